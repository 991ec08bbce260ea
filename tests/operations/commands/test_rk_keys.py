"""``rk_keys``, run as from a shell."""

import json


def test_components_are_listed(filled, shell):
    code, output, _errors = shell("rk_keys")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == ["COMPONENT", "other", "queues", "locks"]


def test_keys_are_listed_and_continued(filled, shell):
    code, output, _errors = shell("rk_keys", "jobs", "--limit", 5, "--json")
    first = json.loads(output)
    assert code == 0
    assert len(first["keys"]) == 5
    names = {key["name"] for key in first["keys"]}
    _code, output, _errors = shell("rk_keys", "jobs", "--cursor", first["cursor"], "--json")
    rest = json.loads(output)
    assert rest["cursor"] == ""
    assert len(names | {key["name"] for key in rest["keys"]}) == 20


def test_keys_are_a_table(filled, shell):
    code, output, _errors = shell("rk_keys", "--component", "locks", "--limit", 1)
    assert code == 0
    assert output.splitlines()[0].split() == ["TYPE", "MEMORY", "EXPIRES", "IN", "KEY"]
    assert "Continue with: --cursor" in output.splitlines()[-1]


def test_wrong_arguments_say_what_is_right(filled, shell):
    code, _output, errors = shell("rk_keys", "--component", "lock")
    assert code == 2
    assert "Did you mean 'locks'?" in errors
    code, _output, errors = shell("rk_keys", "x", "--cursor", "y")
    assert (code, "cursor must be" in errors) == (2, True)
    code, _output, errors = shell("rk_keys", "--cursor", "0.1.200.")
    assert (code, "give the TEXT or the --component of that search" in errors) == (2, True)
    code, _output, errors = shell("rk_keys", "\udcff")
    assert (code, "text must be at most 128 bytes of valid Unicode" in errors) == (2, True)


def test_no_match_exits_with_1_and_no_server_with_69(filled, shell):
    assert shell("rk_keys", "nothing like this")[0] == 1
    filled.server.stop()
    assert shell("rk_keys")[0] == 69
    assert shell("rk_keys", "x")[0] == 69
