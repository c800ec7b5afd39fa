#!/bin/sh
# Installs this checkout into .venv and runs the demonstration: sh scripts/demo.sh [options]
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/install.sh"

install_checkout
exec "$venv/bin/perdure" demo "$@"
