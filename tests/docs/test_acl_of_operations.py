"""The rights that docs/howto/acl.md lists for reports on servers and for keys are enough, and none is superfluous."""

import re

import pytest

from redis_kit.core.errors import PermissionDenied
from redis_kit.operations import component_memory, find_keys, server_reports
from tests.docs.support.pages import ROOT

PAGE = (ROOT / "docs" / "howto" / "acl.md").read_text()
BASE = ("~{prefix}:*", "+ping", "+select", "+type", "+time", "+evalsha", "+eval")


def rights(row):
    (line,) = re.findall(rf"^\| .*{row}.*\| `(\+[^`]*)`.*$", PAGE, re.MULTILINE)
    return line.replace("\\|", "|").split()


@pytest.fixture
def user(own_kit):
    """A function that connects as a user with the basic rights and these."""
    own_kit.client.set(f"{own_kit.prefix}:{{locks:0}}:holder", "x")
    url = own_kit.url.replace("redis://", "redis://site:secret@")

    def connect(*granted):
        basic = [right.format(prefix=own_kit.prefix) for right in BASE]
        own_kit.client.execute_command("ACL", "SETUSER", "site", "reset", "on", ">secret", *basic, *granted)
        own_kit.connect({"URL": url}, READ_TIMEOUT=0.25 + len(granted) / 1e6)  # other settings: other connections

    return connect


def whole():
    (report,) = server_reports()
    return not report.refused and bool(report.memory)


def complete():
    try:
        return bool(component_memory() and find_keys().keys[0].size)
    except PermissionDenied:
        return False


def test_rights_of_the_report_are_enough_and_needed(user):
    listed = rights("rk_doctor")
    user(*listed)
    assert whole()
    for right in listed:
        user(*[each for each in listed if each != right])
        assert not whole(), right


def test_rights_of_keys_are_enough_and_needed(user):
    listed = rights("rk_keys")
    user(*listed)
    assert complete()
    for right in set(listed) - {"+pttl"}:
        user(*[each for each in listed if each != right])
        assert not complete(), right


def test_user_with_the_lines_by_component_lacks_nothing(own_kit):
    (block,) = re.findall(r"## Commands by component.*?```text(.*?)```", PAGE, re.DOTALL)
    lines = re.findall(r"^ACL SETUSER site (.*)$", block, re.MULTILINE)
    rules = " ".join(lines).replace("rk:", f"{own_kit.prefix}:")
    own_kit.client.execute_command("ACL", "SETUSER", "site", *rules.split())
    own_kit.connect({"URL": own_kit.url.replace("redis://", "redis://site:secret@")})
    assert server_reports()[0].missing == []
