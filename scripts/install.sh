# Sourced by the scripts beside it, with `root` set to the checkout: installs the checkout into `venv`.
# PERDURE_VENV names another folder than .venv.

venv=${PERDURE_VENV:-$root/.venv}
export PIP_DISABLE_PIP_VERSION_CHECK=1

# install_checkout [EXTRA]: installs the checkout, with that extra. It does nothing when this very
# pyproject.toml is installed already, so that a second run needs no network.
install_checkout() {
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            echo "perdure needs Python 3.11 or newer as python3; found: $(python3 --version 2>&1)" >&2
            echo "Make the environment with a newer one: python3.12 -m venv $venv" >&2
            exit 1
        fi
        python3 -m venv "$venv"
    fi
    stamp=$venv/perdure-installed
    wanted=$(printf '%s\n' "$root"; cat "$root/pyproject.toml")
    if [ "$(cat "$stamp${1:+-$1}" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing perdure into $venv (once; about a minute)" >&2
        "$venv/bin/python" -m pip install -qq --editable "$root${1:+[$1]}"
        rm -f "$stamp"*
        for installed in "$stamp" "$stamp${1:+-$1}"; do
            printf '%s\n' "$wanted" >"$installed"
        done
    fi
}
