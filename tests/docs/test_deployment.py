"""The guides to systemd, containers and Kubernetes fit the worker: options, ports, probes, periods and exit codes."""

import re
import shlex
from configparser import ConfigParser

import pytest
import yaml

from redis_kit.core import terminal
from redis_kit.queues.commands.rk_worker import Command
from tests.docs.support.pages import ROOT, Page

HOWTO = ROOT / "docs" / "howto"
SECONDS_LEFT = 5  # for the end of the processes, after --grace


def blocks(name, language):
    return [block.text for block in Page(HOWTO / name).blocks() if block.language == language]


def options(words):
    """Return the options of a worker's command line, as the command reads them."""
    at = words.index("rk_worker")
    assert words[at - 1] == "manage.py"
    return vars(Command().create_parser("manage.py", "rk_worker").parse_args(words[at + 1 :]))


@pytest.fixture(scope="module")
def manifest():
    (text,) = [block for block in blocks("kubernetes.md", "yaml") if "kind: Deployment" in block]
    return yaml.safe_load(text)


@pytest.fixture(scope="module")
def container(manifest):
    (found,) = manifest["spec"]["template"]["spec"]["containers"]
    return found


def test_labels_of_the_deployment_select_its_pods(manifest):
    spec = manifest["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_probes_reach_the_port_of_the_worker(container):
    given = options(container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {probe["path"] for probe in probes.values()} == {"/livez", "/readyz"}
    assert probes["readinessProbe"]["path"] == "/readyz"
    assert {ports[probe["port"]] for probe in probes.values()} == {given["health_port"]}
    assert given["address"] == "0.0.0.0"


def test_periods_are_longer_than_the_grace_of_the_worker(manifest, container):
    (compose,) = [
        yaml.safe_load(text)["services"]["worker"] for text in blocks("kubernetes.md", "yaml") if "services:" in text
    ]
    period = manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert period >= options(container["args"])["grace"] + SECONDS_LEFT
    assert int(compose["stop_grace_period"].rstrip("s")) >= options(compose["command"])["grace"] + SECONDS_LEFT
    assert f"127.0.0.1:{options(compose['command'])['health_port']}/readyz" in compose["healthcheck"]["test"][-1]


def test_memory_of_the_container_is_enough_for_its_processes(container):
    given = options(container["args"])
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
    assert limit > (given["processes"] + 1) * given["max_rss"]  # one is being replaced


def test_secret_and_variables_of_the_environment_are_those_of_the_settings(container):
    page = (HOWTO / "kubernetes.md").read_text()
    names = {variable["name"]: variable for variable in container["env"]}
    assert names.keys() == {"DJANGO_SETTINGS_MODULE", "REDIS_URL"}
    secret = names["REDIS_URL"]["valueFrom"]["secretKeyRef"]
    assert f"create secret generic {secret['name']} --from-literal={secret['key']}=" in page
    assert 'os.environ.get("REDIS_URL"' in page


def test_image_starts_the_worker_without_a_shell():
    (line,) = [text for text in blocks("kubernetes.md", "dockerfile") if "CMD" in text]
    assert options(yaml.safe_load(line.removeprefix("CMD ")))["health_port"] == 8001


def test_service_of_systemd_fits_the_worker():
    (text,) = [block for block in blocks("deploy-workers.md", "ini") if "[Service]" in block]
    unit = ConfigParser()
    unit.optionxform = str
    unit.read_string(text)
    service = unit["Service"]
    given = options(shlex.split(service["ExecStart"]))
    assert int(service["TimeoutStopSec"]) >= given["grace"] + SECONDS_LEFT
    assert service["KillMode"] == "mixed"
    assert service["RestartPreventExitStatus"].split() == ["2", str(terminal.MISCONFIGURED)]
    assert f":{given['health_port']}/readyz" in (HOWTO / "deploy-workers.md").read_text()


def test_each_example_of_yaml_can_be_read():
    texts = [
        block.text
        for path in (ROOT / "docs").rglob("*.md")
        for block in Page(path).blocks()
        if block.language == "yaml"
    ]
    assert len(texts) >= 4
    assert all(isinstance(yaml.safe_load(text), dict) for text in texts)


def test_rules_of_alerts_are_whole():
    (group,) = yaml.safe_load((ROOT / "docs" / "monitoring" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}, rule
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert all(
            re.fullmatch(r"\d+[smhd](:\d+[smhd])?", length) for length in re.findall(r"\[([^\]]*)\]", rule["expr"])
        )
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("critical", "warning")
