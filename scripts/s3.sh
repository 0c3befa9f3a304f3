#!/bin/sh
# A real S3 server on loopback for tests and trials: versitygw over a folder, in which each folder is a bucket.
#
# usage: s3.sh start FOLDER    prints the server's 127.0.0.1:PORT once it answers
#        s3.sh stop FOLDER
#        s3.sh program         prints the path of the server's program
#
# Keys are ROOT_ACCESS_KEY and ROOT_SECRET_KEY, or else 'anabranch' and 'anabranch-secret'.
# The server is built by name with Go, which takes some minutes the first time, and is kept in the user's cache.
set -eu

version=v1.8.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/anabranch
program=$cache/versitygw-$version

build() {
    [ ! -x "$program" ] || return 0
    if ! command -v go >/dev/null; then
        echo "Go is needed to build versitygw, and was not found: install it, or put the program at '$program'" >&2
        exit 1
    fi
    echo "building versitygw $version, which takes some minutes" >&2
    mkdir -p "$cache"
    made=$(mktemp -d "$cache/build.XXXXXX")
    GOBIN=$made go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
    mv "$made/versitygw" "$program"
    rmdir "$made"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

answers() {
    python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1).close()' "$1" 2>/dev/null
}

start() {
    build
    mkdir -p "$1"
    about=$1.server
    if [ -e "$about/pid" ]; then
        echo "a server for '$1' is running already, or was killed: s3.sh stop '$1'" >&2
        exit 1
    fi
    mkdir -p "$about"
    port=$(free_port)
    ROOT_ACCESS_KEY=${ROOT_ACCESS_KEY:-anabranch} ROOT_SECRET_KEY=${ROOT_SECRET_KEY:-anabranch-secret} \
        setsid "$program" --quiet --port "127.0.0.1:$port" posix "$1" >"$about/log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$about/pid"
    tries=0
    until answers "$port"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ] || ! kill -0 "$pid" 2>/dev/null; then
            cat "$about/log" >&2
            stop "$1"
            exit 1
        fi
        sleep 0.05
    done
    echo "127.0.0.1:$port"
}

stop() {
    about=$1.server
    if [ -e "$about/pid" ]; then
        pid=$(cat "$about/pid")
        kill "$pid" 2>/dev/null || true
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    fi
    rm -rf "$about"
}

case "$#-${1:-}" in
2-start) start "${2%/}" ;;
2-stop) stop "${2%/}" ;;
1-program)
    build
    echo "$program"
    ;;
*)
    sed -n 's/^# usage: /usage: /p; s/^#        s3/       s3/p' "$0" >&2
    exit 2
    ;;
esac
