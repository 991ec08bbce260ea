"""The checks of the docs find mistakes: a page with one of each kind."""

import pytest

from tests.docs.support import console
from tests.docs.support.pages import ROOT, Page
from tests.docs.support.runner import Runner
from tests.docs.test_code_blocks import _problem
from tests.docs.test_names import _problems


class Planted(Page):
    """A page that is not in a file."""

    def __init__(self, text: str) -> None:
        self.path, self.name, self.text = ROOT / "docs" / "planted.md", "docs/planted.md", text


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(missing)\n```",
        "```python\ndef view(request):\n    return missing()\n```",
        '```python\nREDIS_KIT = {"LOCKS": {"TIMOUT": 1}}\n```',
        '```python\nMIDDLEWARE = ["redis_kit.pageviews.middleware.Missing"]\n```',
        "```python\nawait missing()\n```",
    ],
)
@pytest.mark.django_db
def test_wrong_python_is_reported(text, kit):
    with pytest.raises((AssertionError, NameError, ImportError)):
        Runner(Planted(text), kit).run()


@pytest.mark.django_db
def test_blocks_of_a_page_share_names_modules_and_settings(kit):
    text = """
<!-- run
number = 42
-->
```python
# shop/tasks.py
from redis_kit.queues import task


@task
def send(number): ...
```

```python
REDIS_KIT = {"LOCKS": {"TIMEOUT": 7}, "CONNECTIONS": {"default": {"URL": "redis:///0"}, "jobs": {"URL": "redis://redis.example.com/1"}}}
```

```python
from redis_kit.locks import Lock
from shop.tasks import send

send.enqueue(number)
async with Lock("a", using="jobs") as lease:
    assert lease.held and lease.name == "a"
```

<!-- not run: it only shows the idea -->
```python
missing()
```
"""
    Runner(Planted(text), kit).run()


@pytest.mark.parametrize(
    "command",
    [
        "python manage.py rk_worker --treads 2",
        "python manage.py rk_wroker",
        "make everything",
        "pip install 'django-redis-kit[x]'",
    ],
)
def test_wrong_command_is_reported(command):
    assert console.problem(command)


@pytest.mark.parametrize(
    "command", ["python manage.py rk_worker --threads 2", "make test ARGS=x", "A=b uv run manage.py migrate && ls | wc"]
)
def test_right_command_is_not_reported(command):
    assert not console.problem(command)


@pytest.mark.parametrize(
    "span",
    [
        "redis_kit.locks.Missing",
        "rk_missing",
        'REDIS_KIT["LOCKS"]["TIMOUT"]',
        "TIMOUT_OF_LOCKS",
        "Lock.missing()",
        "--no-such-option",
        "make everything",
        "manage.py rk_worker --treads 2",
    ],
)
def test_wrong_name_is_reported(span):
    assert list(_problems(span))


@pytest.mark.parametrize(
    "text", ["```ini\na\n[b\n```", "```\nplain\n```", "```yaml\nrk_worker --treads 2\n```", "```html\n{% if %}\n```"]
)
def test_wrong_block_is_reported(text):
    assert _problem(next(Planted(text).blocks()))
