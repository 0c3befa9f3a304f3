"""What lies in deploy/: files for Docker, Compose, systemd, Kubernetes and Prometheus that agree with one another.

Whether the steps of the Dockerfile run on a Debian machine is what `make check-deploy` tries, as root and with a
network; here it is tried that the script reads the file right, and that every command in it is one that there is.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from anabranch.cli.parser import command_parser
from anabranch.site import read_site
from anabranch.spark.options import SparkOptions, settings_of

TOP = Path(__file__).parent.parent
DEPLOY = TOP / "deploy"
CHECK = runpy.run_path(str(TOP / "scripts/check_deploy.py"))


def steps() -> list[Any]:
    """The steps of the Dockerfile."""
    found: list[Any] = CHECK["steps_of"]((DEPLOY / "Dockerfile").read_text())
    return found


def loaded(name: str) -> Any:
    """A file in YAML that holds one document."""
    return yaml.safe_load((DEPLOY / name).read_text())


# --- the image ---------------------------------------------------------------------------------------------


def test_a_dockerfile_is_read_step_by_step() -> None:
    """Lines that go on are one step, comments are none, options are apart, and JSON is a list of words."""
    text = '# no step\nFROM a:b\nRUN one \\\n    # within\n    && two\nCOPY --chmod=755 x y /z/\nCMD ["a b", "c"]\n'
    found = CHECK["steps_of"](text)
    assert [(each.keyword, each.text) for each in found] == [
        ("FROM", "a:b"),
        ("RUN", "one && two"),
        ("COPY", "x y /z/"),
        ("CMD", '["a b", "c"]'),
    ]
    assert (found[2].options, found[3].words) == ({"chmod": "755"}, ["a b", "c"])


def test_the_image_is_what_it_should_be() -> None:
    """It is a slim Debian with Java and the wheel, has a check of its health, and a user without rights at its end."""
    found = {each.keyword: each for each in steps()}
    assert re.fullmatch(r"debian:\w+-slim", found["FROM"].text)
    runs = [each.text for each in steps() if each.keyword == "RUN"]
    assert any("openjdk-17-jre-headless" in each and "--no-install-recommends" in each for each in runs)
    assert any("--constraint" in each and ".whl" in each for each in runs)
    assert "/healthz" in found["HEALTHCHECK"].text
    assert found["USER"].text == "anabranch"
    users = [number for number, each in enumerate(steps()) if each.keyword == "USER"]
    installing = [number for number, each in enumerate(steps()) if "pip install" in each.text or "apt-get" in each.text]
    assert max(installing) < min(users)
    assert "CMD" in found
    assert command_parser().parse_args(found["CMD"].words).run


def test_what_the_image_copies_is_in_the_repository() -> None:
    """Each file that is copied is tracked, but for the wheel, which make builds."""
    copied = [word for each in steps() if each.keyword == "COPY" for word in each.words[:-1]]
    assert [word for word in copied if not word.startswith("build/wheel/") and not (TOP / word).exists()] == []
    assert "build/wheel/*.whl" in copied
    sent = [line for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] != "#"]
    assert sent == ["*", *(f"!{word}" for word in copied)]


def test_anabranch_commands_of_the_image_can_be_parsed() -> None:
    """Each `anabranch` that a step runs has arguments that there are."""
    lines = [part.strip() for each in steps() if each.keyword == "RUN" for part in each.text.split("&&")]
    commands = [line.split() for line in lines if line.startswith("anabranch ")]
    assert len(commands) == 3
    for words in commands:
        assert command_parser().parse_args(words[1:]).run


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs that print their names and arguments, a line each."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("anabranch", "java"):
        (folder / name).write_text(f'#!/bin/sh\necho {name}\nfor each in "$@"; do echo "$each"; done\n')
        (folder / name).chmod(0o755)
    (folder / "python3").write_text("#!/bin/sh\necho /opt/pyspark\n")
    (folder / "python3").chmod(0o755)
    return folder


def entered(programs: Path, *words: str, **environment: str) -> list[str]:
    """What the entrypoint runs."""
    bash = shutil.which("bash") or "bash"
    done = subprocess.run(
        [bash, DEPLOY / "entrypoint.sh", *words],
        env={"PATH": str(programs), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_entrypoint_runs_anabranch(programs: Path) -> None:
    """Any arguments are those of `anabranch`, blanks and all."""
    assert entered(programs, "serve", "my site.toml") == ["anabranch", "serve", "my site.toml"]


def test_the_entrypoint_is_that_of_executors(programs: Path) -> None:
    """With `executor` it starts Spark's executor as Kubernetes tells it by the environment, options one by one."""
    found = entered(
        programs,
        "executor",
        SPARK_JAVA_OPT_0="-Dspark.driver.port=7078",
        SPARK_JAVA_OPT_1="-Dtwo words",
        SPARK_EXECUTOR_MEMORY="2g",
        SPARK_DRIVER_URL="spark://CoarseGrainedScheduler@10.0.0.1:7078",
        SPARK_EXECUTOR_ID="3",
        SPARK_EXECUTOR_CORES="2",
        SPARK_APPLICATION_ID="spark-1",
        SPARK_EXECUTOR_POD_IP="10.0.0.2",
        SPARK_RESOURCE_PROFILE_ID="0",
        SPARK_EXECUTOR_POD_NAME="pod-3",
    )
    assert found[:5] == ["java", "-Dspark.driver.port=7078", "-Dtwo words", "-Xms2g", "-Xmx2g"]
    assert found[6].endswith(":/opt/pyspark/jars/*")
    assert found[7] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    options = dict(zip(found[8::2], found[9::2], strict=True))
    assert options == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "pod-3",
    }


def test_the_entrypoint_can_be_run() -> None:
    """It has the right to be run, in the repository, too."""
    assert os.access(DEPLOY / "entrypoint.sh", os.X_OK)


# --- Compose and Prometheus --------------------------------------------------------------------------------


def test_compose_agrees_with_itself() -> None:
    """Volumes and secrets that services use are declared, files that they mount are there, ports are on loopback."""
    compose = loaded("compose.yml")
    services = compose["services"]
    assert {"anabranch", "kafka", "prometheus"} <= set(services)
    for service in services.values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if not source.startswith("."):
                assert source in compose["volumes"], mount
            elif source != "./grafana-dashboard.json":  # see test_the_dashboard_is_there
                assert (DEPLOY / source).exists(), mount
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        assert [port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")] == []
        assert set(service.get("depends_on", ())) <= set(services)
    built = services["anabranch"]["build"]
    assert (DEPLOY / built["context"] / built["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert services["kafka"]["healthcheck"]["test"][0] == "CMD"


def test_the_site_of_compose_can_be_read() -> None:
    """Its example site is taken, speaks to the broker of the same file, and keeps its state in the volume."""
    site = read_site(DEPLOY / "site/SITE.toml")
    assert list(site.subscriptions) == ["large"]
    topic = site.streams["orders"].topic
    assert topic is not None
    listeners = loaded("compose.yml")["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INSIDE://{topic.cluster.brokers}" in listeners.split(",")
    assert site.checkpoint.path is not None
    assert site.checkpoint.path.resolve().parent == DEPLOY / "state"


def rules() -> Iterator[dict[str, Any]]:
    """The alerts."""
    for group in loaded("prometheus-rules.yml")["groups"]:
        yield from group["rules"]


def test_prometheus_scrapes_the_service() -> None:
    """It asks the right path with a token, at the name and port of the service, and its rules lie beside it."""
    config = loaded("prometheus.yml")
    (scraped,) = config["scrape_configs"]
    assert (scraped["job_name"], scraped["metrics_path"]) == ("anabranch", "/metrics")
    assert scraped["authorization"]["credentials_file"] == "/run/secrets/prometheus-token"
    assert scraped["static_configs"] == [{"targets": ["anabranch:8080"]}]
    assert all((DEPLOY / each).exists() for each in config["rule_files"])
    mounted = loaded("compose.yml")["services"]["prometheus"]["volumes"]
    assert all(any(mount.startswith(f"./{each}:") for mount in mounted) for each in config["rule_files"])


def test_the_how_to_names_the_alerts() -> None:
    """The page on alerts has those that there are, and each says how bad it is and what it is about."""
    text = (TOP / "docs/howto/alerting.md").read_text()
    assert re.findall(r"^\| `(Anabranch\w+)` \|", text, re.M) == [each["alert"] for each in rules()]
    for each in rules():
        assert each["labels"]["severity"] in ("page", "ticket")
        assert each["annotations"]["summary"]


def test_alerts_are_about_metrics_that_there_are() -> None:
    """Each metric that an alert or the dashboard asks for is one that the service gives."""
    text = runpy.run_path(str(TOP / "scripts/docs.py"))["GENERATORS"]["metrics"]()
    given = set(re.findall(r"^\| `(\w+)", text, re.M))
    asked = {name for each in rules() for name in re.findall(r"\banabranch_\w+", each["expr"])}
    assert asked
    asked |= set(re.findall(r"\banabranch_\w+", (DEPLOY / "grafana-dashboard.json").read_text()))
    bare = {re.sub(r"_(bucket|sum|count)$", "", name) if name not in given else name for name in asked}
    assert bare - given == set()


def test_the_dashboard_is_there() -> None:
    """The dashboard is one that Grafana can load, of the data source that Compose gives it."""
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert board["panels"]
    (source,) = loaded("grafana/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"


# --- systemd -----------------------------------------------------------------------------------------------


class Unit(configparser.RawConfigParser):
    """A unit of systemd, whose keys have capital letters."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def test_the_unit_is_hardened() -> None:
    """It runs a command that there is, as a user without rights, and may write into its own folders only."""
    unit = Unit(strict=True, interpolation=None)
    unit.read_string((DEPLOY / "anabranch.service").read_text())
    service = unit["Service"]
    program, *words = service["ExecStart"].split()
    assert program.endswith("/bin/anabranch")
    assert command_parser().parse_args(words).run
    assert service["User"] == "anabranch"
    wanted = {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "PrivateDevices": "yes",
        "CapabilityBoundingSet": "",
        "StateDirectory": "anabranch",
        "CacheDirectory": "anabranch",
        "RestrictNamespaces": "yes",
        "SystemCallFilter": "@system-service",
    }
    assert {name: service.get(name) for name in wanted} == wanted
    assert "MemoryDenyWriteExecute" not in service  # the JVM and Numba compile
    assert "NUMBA_CACHE_DIR=/var/cache/anabranch/" in service["Environment"]


# --- Kubernetes --------------------------------------------------------------------------------------------


@pytest.fixture
def manifest() -> dict[str, dict[str, Any]]:
    """The objects of the manifest, by kind and name."""
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes.yml").read_text()))
    objects = {f"{each['kind']}/{each['metadata']['name']}": each for each in found}
    assert len(objects) == len(found)
    return objects


def test_the_manifest_agrees_with_itself(manifest: dict[str, dict[str, Any]]) -> None:
    """Names that objects have for one another are names that there are, all of them in the one namespace."""
    others = [each for key, each in manifest.items() if not key.startswith("Namespace/")]
    assert {each["metadata"]["namespace"] for each in others} == {"anabranch"}
    pod = manifest["Deployment/anabranch"]["spec"]["template"]
    assert f"ServiceAccount/{pod['spec']['serviceAccountName']}" in manifest
    binding = manifest["RoleBinding/anabranch-driver"]
    assert f"Role/{binding['roleRef']['name']}" in manifest
    assert [each["name"] for each in binding["subjects"]] == [pod["spec"]["serviceAccountName"]]
    (container,) = pod["spec"]["containers"]
    for each in container["envFrom"]:
        assert f"Secret/{each['secretRef']['name']}" in manifest
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == set(volumes)
    assert f"ConfigMap/{volumes['site']['configMap']['name']}" in manifest
    assert f"Secret/{volumes['tokens']['secret']['secretName']}" in manifest
    selector = manifest["Service/anabranch"]["spec"]["selector"]
    assert selector.items() <= pod["metadata"]["labels"].items()
    assert selector == manifest["Deployment/anabranch"]["spec"]["selector"]["matchLabels"]


def test_the_driver_may_do_what_spark_needs_and_no_more(manifest: dict[str, dict[str, Any]]) -> None:
    """It may make and delete pods in its namespace, and has no right in the cluster."""
    (rule,) = manifest["Role/anabranch-driver"]["rules"]
    assert {"pods", "configmaps", "services", "persistentvolumeclaims"} == set(rule["resources"])
    assert {"create", "delete", "deletecollection", "get", "list", "watch"} <= set(rule["verbs"])
    assert not any(key.startswith("Cluster") for key in manifest)


def test_the_driver_is_started_with_options_that_there_are(manifest: dict[str, dict[str, Any]]) -> None:
    """Its arguments are those of `anabranch serve`, and its executors have its own image, address, ports and keys."""
    (container,) = manifest["Deployment/anabranch"]["spec"]["template"]["spec"]["containers"]
    options = command_parser().parse_args(container["args"])
    spark = SparkOptions(options.master, settings_of(options.conf))
    assert spark.master == "k8s://https://kubernetes.default.svc"
    assert spark.addresses() == {"spark.driver.bindAddress": "$(POD_IP)"}
    assert {each["name"] for each in container["env"]} == {"POD_IP", "POD_NAME"}
    settings = spark.settings
    assert settings["spark.kubernetes.container.image"] == container["image"]
    assert settings["spark.authenticate"] == "true"
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    assert (settings["spark.driver.port"], settings["spark.driver.blockManager.port"]) == (
        ports["driver"],
        ports["blocks"],
    )
    assert str(options.port) == ports["http"]
    keys = manifest["Secret/anabranch-s3"]["stringData"]
    given = {name.rpartition(".")[2]: value for name, value in settings.items() if ".executor.secretKeyRef." in name}
    assert given == {name: f"anabranch-s3:{name}" for name in keys}
    probes = {container[each]["httpGet"]["path"] for each in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"/healthz", "/readyz"}


def test_the_site_of_the_manifest_can_be_read(manifest: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Its SITE.toml is taken, with the queries beside it, and keeps nothing in the pod."""
    for name, text in manifest["ConfigMap/anabranch-site"]["data"].items():
        (tmp_path / name).write_text(text)
    site = read_site(tmp_path / "SITE.toml")
    assert site.checkpoint.path is None
    assert all(str(each.path).startswith("s3://") for each in site.streams.values())
    tokens = manifest["Secret/anabranch-tokens"]["stringData"]["tokens"].splitlines()
    assert [line.split()[0] for line in tokens] == ["read", "administer"]
