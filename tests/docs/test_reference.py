"""The reference names what is in the code: options, arguments, checks, keys, signals."""

import importlib.util
import inspect
import re
import sys
from dataclasses import fields
from typing import Any

import pytest
from django.dispatch import Signal

from redis_kit.core.component import components
from redis_kit.locks.keys import LockKeys
from redis_kit.queues import task
from redis_kit.queues.engine.feature import option_class
from redis_kit.queues.keys import OF_ONE, QueueKeys
from redis_kit.throttling.keys import ThrottleKeys
from tests.docs.support.pages import ROOT
from tests.queues.support import feature_keys

REFERENCE = ROOT / "docs" / "reference"
EXTENSIONS = ROOT / "docs" / "_ext"


@pytest.fixture(scope="module")
def generate() -> Any:
    sys.path.insert(0, str(EXTENSIONS))
    spec = importlib.util.spec_from_file_location("docs_generate", EXTENSIONS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(EXTENSIONS))


@pytest.mark.parametrize("name", ["settings", "connections", "commands", "checks"])
def test_generated_tables_are_those_of_the_code(name, generate):
    text = (REFERENCE / f"{name}.md").read_text()
    assert generate.filled(text) == text, "run: make reference"


def test_every_section_and_command_has_its_table():
    settings, commands = (REFERENCE / "settings.md").read_text(), (REFERENCE / "commands.md").read_text()
    assert not [one.label for one in components() if f"<!-- generated: settings {one.label} -->" not in settings]
    names = [path.stem for path in (ROOT / "redis_kit" / "management" / "commands").glob("rk_*.py")]
    assert not [name for name in names if f"<!-- generated: command {name} -->" not in commands]


@pytest.mark.parametrize("page", sorted((REFERENCE / "api").glob("[!i]*.md")), ids=lambda page: page.stem)
def test_every_module_of_the_api_has_its_list_for_a_code_host(page):
    text = page.read_text()
    regions = re.findall(r"<!-- generated: api ([\w.]+) -->\n\n- `", text)
    assert regions == re.findall(r"^## (redis_kit[\w.]*)$", text, re.MULTILINE)


def test_list_of_the_api_has_signatures_and_first_sentences(generate):
    text = generate.api_list("redis_kit.signins")
    signature = "sign_in(at=None, *, token='') -> SignIn"
    assert f"  - `{signature}`, `asign_in()`: Sign in now, or at an earlier time or day.\n" in text


def test_every_check_has_a_meaning(generate):
    from reference_checks import MEANINGS

    assert generate.check_ids() == set(MEANINGS)


def test_every_key_is_listed():
    text = (REFERENCE / "keys.md").read_text()
    fields = {
        *LockKeys._fields,
        *QueueKeys._fields,
        *OF_ONE,
        *ThrottleKeys._fields,
        *feature_keys.names(),
    }
    standing = {"state", "standing"}  # they have no word of their own in the key
    assert not [field for field in fields - standing if not re.search(rf"[`:.]{field}[`:]", text)]


def test_every_signal_is_listed():
    text = (REFERENCE / "signals.md").read_text()
    modules = ["core", "queues", "throttling", "signins"]
    signals = [
        name
        for module in modules
        for name, value in vars(importlib.import_module(f"redis_kit.{module}.signals")).items()
        if isinstance(value, Signal)
    ]
    assert not [name for name in signals if f"| `{name}` |" not in text]


def test_every_option_of_a_task_is_in_the_table_of_its_page():
    text = (ROOT / "docs" / "topics" / "queues" / "tasks.md").read_text()
    names = [name for name in inspect.signature(task).parameters if name not in ("func", "options")]
    names += [field.name for field in fields(option_class())]
    assert not [name for name in names if not re.search(rf"^\| [^|]*`{name}`[^|]*\|", text, re.MULTILINE)]
