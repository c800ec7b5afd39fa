#!/bin/sh
# Builds the documentation into build/site and fails on any broken link: sh scripts/docs.sh
# With an argument MkDocs does that instead: sh scripts/docs.sh serve
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/install.sh"

install_checkout docs
cd "$root"
if [ $# -eq 0 ]; then
    "$venv/bin/python" -m scripts.reference
    set -- build --strict --quiet
fi
# Each page links to the repository that it was built from, if that can be read on the web.
origin=$(git remote get-url origin 2>/dev/null || true)
case $origin in https://*) export PERDURE_REPOSITORY="${PERDURE_REPOSITORY-$origin}" ;; esac
# The theme would print an advertisement.
export NO_MKDOCS_2_WARNING=1
exec "$venv/bin/mkdocs" "$@"
