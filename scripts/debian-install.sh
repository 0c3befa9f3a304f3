#!/bin/sh
# Install the first of the named packages that this Debian or Ubuntu has.
#
# usage: debian-install.sh PACKAGE...
#
# Succeeds only where that was possible: as root, with apt-get.
# It never asks for a password; the caller then prints what the user has to run.
set -eu

command -v apt-get >/dev/null || exit 1
[ "$(id -u)" = 0 ] || exit 1

export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet </dev/null >&2 || true # a stale list may still hold the package
for package in "$@"; do
    echo "installing $package" >&2
    if apt-get install --yes --quiet --no-install-recommends "$package" </dev/null >&2; then
        exit 0
    fi
done
exit 1
