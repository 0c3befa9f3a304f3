#!/bin/sh
# Start and stop a real Kafka broker on this machine, for tests, the demo and trying things out.
#
# usage: kafka.sh start [FOLDER [PROPERTY=VALUE...]]
#        kafka.sh stop [FOLDER]
#        kafka.sh jars
#
# `start` prints the address of the client listener and nothing else, as in 127.0.0.1:21345; the rest is in FOLDER:
# server.properties, data, broker.log, pid.
# A broker that has been stopped or killed starts again in its folder with its data and its address; one that runs is
# left alone. Properties are those of a broker, and are heeded when a folder is first used.
# `stop` ends the broker of the folder and no other process.
# `jars` only gets the broker's jars ready, by Maven, and the archive of classes that makes it start in half the time;
# `start` does so where it has not been done.
#
# One that was killed is back within seconds, since its session ends sooner than elsewhere.
# It is one node of its own: broker and controller in one process, topics with one replica, everything on loopback.
set -eu

version=4.3.1
here=$(cd "${0%/*}" && pwd)
made=${here%/*}/build/kafka
classpath=$made/classpath
archive=$made/classes.jsa
shared=-XX:SharedArchiveFile=$archive

if [ "${KAFKA_JAVA:-}" != found ]; then
    KAFKA_JAVA=found exec "$here/with-java.sh" "$0" "$@"
fi

# Become a program of the broker's jars: a small heap, code that is compiled quickly rather than well, warnings only.
become() { # CLASS-SHARING CLASS ARGUMENT...
    sharing=$1
    shift
    exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto "$sharing" \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info \
        -cp "$(cat "$classpath")" "$@"
}

find_maven() {
    command -v mvn >/dev/null && return
    "$here/debian-install.sh" maven && command -v mvn >/dev/null && return
    echo "Maven is needed for the broker's jars and was not found; run:" >&2
    if command -v apt-get >/dev/null; then
        echo "    sudo apt-get install maven" >&2
    elif command -v dnf >/dev/null; then
        echo "    sudo dnf install maven" >&2
    else
        echo "    brew install maven" >&2
    fi
    return 1
}

jars() {
    [ "$archive" -nt "$here/kafka.sh" ] && return
    find_maven
    echo "getting Kafka $version ready (a minute the first time)" >&2
    rm -rf "$made/first" "$classpath" "$archive"
    mkdir -p "$made/first"
    cat >"$made/pom.xml" <<EOF
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch</groupId>
  <artifactId>broker</artifactId>
  <version>0</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
EOF
    mvn -q -B -f "$made/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath \
        -Dmdep.outputFile="$classpath" >"$made/maven.log" 2>&1 || {
        cat "$made/maven.log" >&2
        return 1
    }
    format "$made/first"
    launch "-XX:ArchiveClassesAtExit=$archive" "$made/first" >/dev/null # the JVM writes the archive as it ends
    stop "$made/first"
    rm -rf "$made/first"
}

# Two ports that are free, below those that systems hand out to clients, so that a broker finds its own again, and an id.
drawn() {
    python3 - <<'EOF'
import base64, random, socket, uuid

found = []
while len(found) < 2:
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(("127.0.0.1", random.randrange(20000, 30000)))
    except OSError:
        continue
    found.append(held)
id = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
print(*(held.getsockname()[1] for held in found), id)
EOF
}

format() { # FOLDER PROPERTY...
    rm -rf "$1/data"
    read -r client controller id <<EOF
$(drawn)
EOF
    client=127.0.0.1:$client
    controller=127.0.0.1:$controller
    cat >"$1/server.properties" <<EOF
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://$client,CONTROLLER://$controller
advertised.listeners=PLAINTEXT://$client
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=$controller
log.dirs=$1/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
EOF
    where=$1
    shift
    [ $# = 0 ] || printf '%s\n' "$@" >>"$where/server.properties"
    (become "$shared" kafka.tools.StorageTool format --standalone -t "$id" \
        -c "$where/server.properties" >"$where/format.log" 2>&1) || {
        cat "$where/format.log" >&2
        return 1
    }
    printf '%s\n' "$client" >"$where/address" # last: now it can be started
}

running() { # FOLDER: whether its broker runs; that a process has its number is not enough
    pid=$(cat "$1/pid" 2>/dev/null) && ps -ww -p "$pid" -o args= 2>/dev/null | grep -qF "$1/server.properties"
}

launch() { # CLASS-SHARING FOLDER
    if ! running "$2"; then
        : >"$2/broker.log"
        (become "$1" kafka.Kafka "$2/server.properties" >>"$2/broker.log" 2>&1 </dev/null) &
        pid=$!
        echo $pid >"$2/pid"
        until grep -q "Kafka Server started" "$2/broker.log"; do
            if ! kill -0 $pid 2>/dev/null; then
                echo "the broker did not start:" >&2
                cat "$2/broker.log" >&2
                return 1
            fi
            sleep 0.1
        done
    fi
    cat "$2/address"
}

stop() { # FOLDER
    running "$1" || return 0
    kill "$pid"
    for _ in $(seq 300); do
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$1/pid"
            return
        fi
        sleep 0.1
    done
    kill -9 "$pid"
}

usage() {
    sed -n 's/^# usage: /usage: /p; s/^#        kafka/       kafka/p' "$0" >&2
    exit 2
}

verb=${1:-}
[ $# = 0 ] || shift
folder=${1:-$made/broker}
[ $# = 0 ] || shift
case $verb in
start)
    jars
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    [ -s "$folder/address" ] || format "$folder" "$@"
    launch "$shared" "$folder"
    ;;
stop)
    [ ! -d "$folder" ] || stop "$(cd "$folder" && pwd)"
    ;;
jars) jars ;;
*) usage ;;
esac
