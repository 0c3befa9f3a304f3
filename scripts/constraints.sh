#!/bin/sh
# Renew constraints.txt: install the newest versions that pyproject.toml allows, and write them down.
set -eu

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${0%/*}/venv.sh" "$fresh"
{
    echo "# The versions that are tested, one per package. Renew with: make constraints"
    # pip comes with the environment.
    "$fresh/bin/python" -m pip list --disable-pip-version-check --format=freeze --exclude-editable \
        --exclude pip | LC_ALL=C sort -f
} >"$fresh/constraints.txt"
cp "$fresh/constraints.txt" constraints.txt
