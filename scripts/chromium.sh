#!/bin/sh
# Print the path of a chromium for the tests that look at the page.
#
# usage: chromium.sh
#
# It is looked for in ANABRANCH_CHROMIUM, then on the PATH under the names that systems give it.
# Where there is none it is installed (root on Debian or Ubuntu), or the one command to run is printed.
set -eu

find_chromium() {
    if [ -n "${ANABRANCH_CHROMIUM:-}" ]; then
        if [ -x "$ANABRANCH_CHROMIUM" ]; then
            echo "$ANABRANCH_CHROMIUM"
            return
        fi
        echo "ANABRANCH_CHROMIUM='$ANABRANCH_CHROMIUM' cannot be run; looking on the PATH" >&2
    fi
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    return 1
}

command_to_run() {
    if command -v apt-get >/dev/null; then
        echo "sudo apt-get install chromium"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install chromium"
    elif command -v brew >/dev/null; then
        echo "brew install --cask chromium, and set ANABRANCH_CHROMIUM to the program in it"
    else
        echo "install Chromium and set ANABRANCH_CHROMIUM to its program"
    fi
}

find_chromium && exit
"${0%/*}/debian-install.sh" chromium chromium-browser || true
if ! find_chromium; then
    echo "chromium is needed for the tests of the page and was not found; run:" >&2
    echo "    $(command_to_run)" >&2
    exit 1
fi
