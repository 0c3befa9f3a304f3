"""What a cluster needs besides Spark, on machines of a lab: an S3 server and a Kafka broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import monotonic, sleep

from cluster.machines import Lab, Machine
from cluster.standalone import python_paths

PATIENCE = 120.0
_ROOT = Path(__file__).resolve().parents[2]
_SCRIPTS = _ROOT / "scripts"
_PORT, _S3_PORT = 9092, 7070
BUCKET = "anabranch"
_WRITER = """
import sys
from confluent_kafka import Producer
brokers, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})
for line in sys.stdin.buffer.read().splitlines():
    producer.produce(topic, value=line, partition=0)
assert producer.flush(60) == 0, "the broker did not take all messages"
"""
_READER = """
import sys
sys.path.insert(0, sys.argv[3])
from brokers import Broker
for record in Broker(None, sys.argv[1]).read(sys.argv[2]):
    sys.stdout.buffer.write((record.value or b"") + b"\\n")
"""
_TOPIC = """
import sys
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
for name in sys.argv[2:]:
    admin.create_topics([NewTopic(name, num_partitions=1)], operation_timeout=60, request_timeout=60)[name].result()
"""


_STORE = f"""
import json, os, sys
from obstore import get, list, put
from obstore.store import S3Store
found = os.environ
store = S3Store("{BUCKET}", endpoint=found["AWS_ENDPOINT_URL"], client_options={{"allow_http": True}})
"""
_PUTTER = f"{_STORE}put(store, sys.argv[1], sys.stdin.buffer.read())"
_GETTER = f"""{_STORE}
names = sorted(each["path"] for batch in list(store, sys.argv[1]) for each in batch)
print(json.dumps([bytes(get(store, name).bytes()).decode() for name in names]))
"""


class KafkaMachine:
    """A broker, and the programs that talk to it, on the same machine."""

    def __init__(self, lab: Lab) -> None:
        subprocess.run([_SCRIPTS / "kafka.sh", "jars"], check=True)
        made = _ROOT / "build" / "kafka"
        jars = [Path(each) for each in (made / "classpath").read_text().strip().split(":")]
        common = os.path.commonpath(jars)
        paths = [*python_paths(), str(_SCRIPTS), str(made), common, str(_ROOT / "tests")]
        path = f"{Path(sys.base_prefix, 'bin')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        self.machine = lab.machine("kafka", paths, {"PATH": path})
        self.brokers = f"{self.machine.address}:{_PORT}"
        own = f"{self.machine.address}:{_PORT + 1}"
        properties = {
            "listeners": f"PLAINTEXT://{self.brokers},CONTROLLER://{own}",
            "advertised.listeners": f"PLAINTEXT://{self.brokers}",
            "controller.quorum.bootstrap.servers": own,
        }
        given = [f"{name}={value}" for name, value in properties.items()]
        self.machine.run([str(_SCRIPTS / "kafka.sh"), "start", "/tmp/kafka", *given])

    def topics(self, *names: str) -> None:
        """Make topics of one partition each."""
        self._python(_TOPIC, *names)

    def write(self, topic: str, lines: Iterable[str]) -> None:
        """Write lines into a topic, a message each."""
        self._python(_WRITER, topic, given="".join(f"{line}\n" for line in lines))

    def read(self, topic: str) -> list[str]:
        """The messages of a topic that readers of what is committed see."""
        return self._python(_READER, topic, str(_ROOT / "tests")).splitlines()

    def _python(self, program: str, *arguments: str, given: str = "") -> str:
        return self.machine.run([sys.executable, "-c", program, self.brokers, *arguments], input=given)


class S3Machine:
    """An S3 server with one bucket, and a program that writes into it, on the same machine."""

    def __init__(self, lab: Lab) -> None:
        program = subprocess.run([_SCRIPTS / "s3.sh", "program"], check=True, stdout=subprocess.PIPE, text=True)
        found = program.stdout.strip()
        self.machine = lab.machine("s3", [*python_paths(), found])
        self.machine.run(["mkdir", "-p", f"/tmp/s3/{BUCKET}"])
        address = f"{self.machine.address}:{_S3_PORT}"
        keys = {"ROOT_ACCESS_KEY": "anabranch", "ROOT_SECRET_KEY": "anabranch-secret"}
        serve = [found, "--quiet", "--port", address, "posix", "/tmp/s3"]
        self.machine.background(serve, "/tmp/s3.log", environment=keys)
        awaited(self.machine, self.machine.address, _S3_PORT)
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ACCESS_KEY_ID": keys["ROOT_ACCESS_KEY"],
            "AWS_SECRET_ACCESS_KEY": keys["ROOT_SECRET_KEY"],
            "AWS_REGION": "us-east-1",
        }
        """What clients need."""

    def url(self, key: str) -> str:
        return f"s3://{BUCKET}/{key}"

    def put(self, key: str, text: str) -> None:
        """Write an object."""
        self.machine.run([sys.executable, "-c", _PUTTER, key], input=text, environment=self.environment)

    def texts(self, folder: str) -> list[str]:
        """The objects of a folder in the order of their names."""
        command = [sys.executable, "-c", _GETTER, folder]
        found: list[str] = json.loads(self.machine.run(command, environment=self.environment))
        return found


def awaited(machine: Machine, host: str, port: int) -> None:
    """Wait until somebody listens at an address, as a machine sees it."""
    look = f"import socket; socket.create_connection(({host!r}, {port}), 1).close()"
    patience = monotonic() + PATIENCE
    while machine.start([sys.executable, "-c", look], stderr=subprocess.DEVNULL).wait() != 0:
        assert monotonic() < patience, f"nobody listens at {host}:{port}"
        sleep(0.1)
