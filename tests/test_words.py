"""The check of words, .ci/words: each entry of its list is found wherever words are, and quotations are not."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
COMMAND = ROOT / ".ci" / "words"
FILES = {
    "docstring.py": '"""{0}"""\n',
    "method.py": 'class Lock:\n    def acquire(self):\n        """Acquire the lock.\n\n        {0}\n        """\n',
    "comment.py": "# {0}\n",
    "trailing.py": "limit = 3  # {0}\n",
    "error.py": 'raise ValueError("{0}")\n',
    "f_string.py": 'raise ValueError(f"{0} {{limit}}")\n',
    "log.py": 'logger.warning("{0} %s", name)\n',
    "help.py": 'parser.add_argument("--limit", help="{0}")\n',
    "translated.py": 'title = _("{0}")\n',
    "script.lua": "-- {0}\n",
    "page.html": "<p>{0}</p>\n",
    "paragraph.md": "# Title\n\n{0}\n",
    "item.md": "- One\n- {0}\n",
    "cell.md": "| Name | Text |\n| --- | --- |\n| a | {0} |\n",
    "translated.html": '<p>{{% translate "{0}" %}}</p>\n',
}


def load():
    """Import the command as a module."""
    loader = SourceFileLoader("words_check", str(COMMAND))
    spec = spec_from_loader(loader.name, loader)
    module = module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses and NamedTuples look themselves up
    loader.exec_module(module)
    return module


words = load()
LIST = words.Words(words.LIST.read_text().splitlines())


def hits(path, text, wordlist=LIST):
    return [instead for _, _, instead in wordlist.hits(path, text)]


def test_every_entry_of_the_list_finds_its_example():
    missed = [rule.example for rule in LIST.rules if rule.instead not in hits("a.py", f'"""{rule.example}"""\n')]
    assert LIST.rules
    assert not missed


@pytest.mark.parametrize("path", FILES)
def test_word_is_found_in_each_kind_of_text(path):
    assert hits(path, FILES[path].format("It asks anew."))
    assert not hits(path, FILES[path].format("It asks again."))


def test_every_name_of_the_list_is_hits():
    for name in LIST.names:
        for text in (f"{name} = 1\n", f"def f({name}): pass\n", f"self._{name} = 1\n", f"[0 for {name} in range(3)]\n"):
            assert hits("a.py", text), text
    assert not hits("a.py", "found_jobs = 1\n")


def test_code_is_no_text():
    assert not hits("a.py", '"""Send ``beat`` and `beat`."""\nkey = self.key("beat")\n')
    assert not hits("a.lua", "-- KEYS[1]  settled  hash: worker -> its answers\nlocal beat = KEYS[1]\n")


def test_code_blocks_and_comments_of_a_page_are_no_text():
    assert not hits("a.md", "```python\nbeat = 1  # Redis is back\n```\n\n<!-- It asks anew. -->\n")


def test_sentence_is_found_although_it_is_broken_into_lines():
    assert hits("a.py", '"""The server\n    is away."""\n')
    assert hits("a.py", "# The server\n# is away.\n")
    assert hits("a.lua", "-- The server\n-- is away.\n")


def test_phrase_that_is_allowed_in_a_file_is_excused_there():
    quoting = words.Words([*words.LIST.read_text().splitlines(), "allow | a.py | said: Redis is back"])
    text = '"""An earlier version said: Redis is back."""\n'
    assert not hits("a.py", text, quoting)
    assert hits("b.py", text, quoting)
    naming = words.Words([*words.LIST.read_text().splitlines(), "allow | a.py | known"])
    assert not hits("a.py", "known: bool\n", naming)
    assert hits("b.py", "known: bool\n", naming)


def test_command_prints_each_hit_and_fails(tmp_path):
    (tmp_path / "planted.py").write_text('"""Redis is back."""\n')
    done = subprocess.run([COMMAND, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "planted.py:1: 'Redis is back.'" in done.stdout
    (tmp_path / "planted.py").write_text('"""Reconnected to Redis."""\n')
    assert subprocess.run([COMMAND, tmp_path], capture_output=True).returncode == 0
