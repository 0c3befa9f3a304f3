#!/bin/sh
# Make the virtual environment and install the project with its development tools, versions as pinned.
#
# usage: venv.sh DIRECTORY [PIP-OPTION...]
#
# An environment that is there and works is kept and only brought up to date.
set -eu

directory=$1
shift

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if recent "$name"; then
            command -v "$name"
            return
        fi
    done
    echo "Python 3.11 or newer is needed; 'python3' is $(python3 --version 2>&1 || echo missing)" >&2
    return 1
}

# Debian ships Python without the part of `venv` that brings pip along.
has_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

if ! { recent "$directory/bin/python" && "$directory/bin/python" -m pip --version >/dev/null 2>&1; }; then
    python=$(find_python)
    if ! has_venv "$python"; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        "${0%/*}/debian-install.sh" "$package" python3-venv || true
        if ! has_venv "$python"; then
            echo "Python's venv module is missing; run:" >&2
            echo "    sudo apt-get install $package" >&2
            exit 1
        fi
    fi
    "$python" -m venv --clear "$directory"
fi

echo "installing into $directory (some minutes the first time)" >&2
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" --editable '.[dev,docs,tracing]'
