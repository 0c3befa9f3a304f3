#!/bin/sh
# Run a command that needs Java 17 or newer, as Spark does.
#
# usage: with-java.sh COMMAND [ARGUMENT...]
#
# Java is looked for where Spark looks: under JAVA_HOME, else on the PATH.
# A JAVA_HOME that is too old is set aside where the PATH has a better one.
# Where there is none at all it is installed (root on Debian or Ubuntu), or the one command to run is printed.
set -eu

needed=17

# The first number of "17.0.1", "21" or "22-ea"; 1 for "1.8.0_292"; nothing where $1 is no Java.
major() {
    "$1" -version 2>&1 </dev/null | sed -n '/ version "/{s/.* version "\([0-9]*\).*/\1/p;q;}'
}

recent() {
    found=$(major "$1")
    [ "${found:-0}" -ge "$needed" ]
}

find_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        recent "$JAVA_HOME/bin/java" && return
    fi
    recent java || return
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "JAVA_HOME='$JAVA_HOME' is not Java $needed or newer; using the one on the PATH" >&2
        unset JAVA_HOME # Spark would take it first
    fi
}

command_to_run() {
    if command -v apt-get >/dev/null; then
        echo "sudo apt-get install openjdk-17-jre-headless"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install java-21-openjdk-headless"
    elif command -v brew >/dev/null; then
        echo "brew install --cask temurin@17"
    else
        echo "install a Java of https://adoptium.net and set JAVA_HOME"
    fi
}

if ! find_java; then
    "${0%/*}/debian-install.sh" openjdk-17-jre-headless default-jre-headless || true
    if ! find_java; then
        echo "Java $needed or newer is needed and was not found; run:" >&2
        echo "    $(command_to_run)" >&2
        exit 1
    fi
fi

exec "$@"
