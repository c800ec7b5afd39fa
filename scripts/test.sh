#!/bin/sh
# Installs this checkout with its test tools into .venv and runs every gate: sh scripts/test.sh [pytest options]
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/install.sh"

install_checkout test
cd "$root"
"$venv/bin/ruff" check --quiet
"$venv/bin/ruff" format --check --quiet
"$venv/bin/mypy" --no-error-summary
"$venv/bin/check-jsonschema" --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$venv/bin/zizmor" --offline --quiet .github
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --quiet
exec "$venv/bin/pytest" --numprocesses auto "$@"
