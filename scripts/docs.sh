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
# The theme would print an advertisement.
export NO_MKDOCS_2_WARNING=1
exec "$venv/bin/mkdocs" "$@"
