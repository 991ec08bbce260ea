"""``manage.py rk_locks``."""

import io
import json
from functools import partial

import pytest
from django.core.management import call_command

from redis_kit.locks import Lock, LockLost, Semaphore
from redis_kit.locks.inspection import held_locks

AWAY = {"URL": "redis://127.0.0.1:1/0"}


@pytest.fixture
def rk_locks(shell):
    return partial(shell, "rk_locks")


@pytest.fixture
def many(kit):
    """A lock and a semaphore that are held."""
    return Lock("invoice:42", timeout=50).acquire(), Semaphore("supplier", 3, timeout=100).acquire()


def test_nothing_is_held(kit, rk_locks):
    assert rk_locks("list") == (0, "Nothing is held.\n", "")
    code, output, _ = rk_locks("list", "--json")
    assert (code, json.loads(output)) == (0, {"locks": [], "semaphores": [], "more": 0})


def test_list_is_a_table_of_what_ends_first(many, rk_locks):
    code, output, errors = rk_locks("list")
    titles, lock, semaphore = output.splitlines()
    assert (code, errors) == (0, "")
    assert titles.split("  ")[0] == "NAME"
    assert lock.split()[:2] == ["invoice:42", "lock"]
    assert lock.split()[-1] == str(many[0].fence)
    assert titles.index("HELD BY") == lock.index(held_locks().locks[0].holder) == semaphore.index("1 of 3 slots")


def test_list_says_how_many_it_does_not_show(kit, rk_locks):
    leases = [Lock(f"n{number}", timeout=100 + number).acquire() for number in range(5)]
    lines = rk_locks("list", "--limit", 2)[1].splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["n0", "n1"]
    assert lines[3].startswith("3 more")
    assert len(leases) == 5


def test_json_has_all_that_is_known(many, rk_locks):
    code, output, _ = rk_locks("list", "--json")
    data = json.loads(output)
    assert code == 0
    assert data["locks"][0]["name"] == "invoice:42"
    assert data["locks"][0]["fence"] == many[0].fence
    assert data["locks"] == [data["locks"][0] | {"kind": "lock", "waiters": 0, "timeout": 50.0}]
    assert data["semaphores"][0]["holders"][0]["fence"] == many[1].fence
    assert data["more"] == 0
    assert json.loads(rk_locks("show", "supplier", "--json")[1])[0]["used"] == 1


def test_show_tells_all_about_a_name(many, rk_locks):
    code, output, errors = rk_locks("show", "invoice:42")
    assert (code, errors) == (0, "")
    assert output.splitlines()[0] == "invoice:42, lock"
    assert f"held by   {held_locks().locks[0].holder}" in output
    assert "test_rk_locks.py:" in output
    assert f"fence     {many[0].fence}" in output
    _, output, _ = rk_locks("show", "supplier")
    assert output.splitlines()[:2] == ["supplier, semaphore", "  in use    1 of 3 slots"]
    assert f"fence     {many[1].fence}" in output


@pytest.mark.parametrize("action", [("show",), ("release", "--no-input")])
def test_unknown_name_says_so_and_which_are_near(many, rk_locks, action):
    assert rk_locks(*action, "invoice:43") == (
        1,
        "",
        "CommandError: Nothing is held under the name invoice:43. Similar names that are held: invoice:42.\n",
    )
    assert rk_locks(*action, "zzz") == (1, "", "CommandError: Nothing is held under the name zzz.\n")


def test_release_says_from_whom_it_took_it(many, rk_locks, caplog):
    holder = held_locks().locks[0].holder
    code, output, errors = rk_locks("release", "invoice:42", "--no-input")
    assert (code, errors) == (0, "")
    assert output.startswith(f"Released: lock invoice:42, held by {holder}")
    assert not Lock("invoice:42").locked()
    assert [record.levelname for record in caplog.records if f"fence {many[0].fence}" in record.getMessage()] == [
        "WARNING"
    ]
    with pytest.raises(LockLost):
        many[0].release()


def test_release_asks_for_the_name(many, rk_locks):
    for typed in ("", "\n", "invoice:4\n", "y\n"):
        code, output, errors = rk_locks("release", "invoice:42", typed=typed)
        assert code == 1
        assert "Type the name" in output
        assert "the answer does not match" in errors
        assert many[0].extend()
    assert rk_locks("release", "supplier", typed="supplier\n")[0] == 0
    assert held_locks().semaphores == []


def test_name_that_was_taken_anew_while_somebody_typed_is_left_alone(kit, rk_locks, monkeypatch):
    first, lock = Lock("a").acquire(), Lock("a")

    def typed(prompt):
        first.release()
        lock.acquire()
        return "a"

    monkeypatch.setattr("builtins.input", typed)
    code, _, errors = rk_locks("release", "a", typed="")
    assert (code, errors) == (1, "CommandError: Nothing was released: a was released by its holder.\n")
    assert lock.owned()


def test_one_of_several_slots_is_released_by_its_fence(kit, rk_locks):
    semaphore = Semaphore("s", 3)
    leases = [semaphore.acquire() for _ in range(3)]
    assert rk_locks("release", "s", "--fence", leases[1].fence, "--no-input")[0] == 0
    assert leases[0].extend()
    with pytest.raises(LockLost):
        leases[1].extend()
    code, output, _ = rk_locks("release", "s", "--no-input")
    assert (code, len(output.splitlines())) == (0, 2)
    assert held_locks().semaphores == []


def test_name_of_two_kinds_is_not_guessed(kit, rk_locks):
    lock, slot = Lock("a").acquire(), Semaphore("a", 1).acquire()
    code, output, errors = rk_locks("release", "a", "--no-input")
    assert (code, output) == (2, "")
    assert "usage:" in errors
    assert "--kind" in errors.splitlines()[-1]
    assert rk_locks("release", "a", "--kind", "semaphore", "--no-input")[0] == 0
    assert lock.extend()
    with pytest.raises(LockLost):
        slot.extend()
    code, _, errors = rk_locks("release", "a", "--kind", "semaphore", "--no-input")
    assert (code, errors) == (
        1,
        f"CommandError: Nothing was released. a is held, but as lock with the fence {lock.fence}.\n",
    )
    assert rk_locks("release", "a", "--fence", lock.fence + 1, "--no-input")[0] == 1
    assert lock.extend()


def test_semaphore_within_another_is_named_with_it(kit, rk_locks):
    outer = Semaphore("all", 10)
    slot = Semaphore("tenant", 2, within=outer).acquire()
    assert "tenant (within all)" in rk_locks("list")[1]
    code, _, errors = rk_locks("show", "tenant")
    assert (code, errors) == (
        1,
        "CommandError: Nothing is held under the name tenant. Similar names that are held: tenant (within all).\n",
    )
    assert f"fence     {slot.fence}" in rk_locks("show", "tenant", "--within", "all")[1]
    assert rk_locks("release", "tenant", "--within", "all", "--fence", slot.fence, typed="tenant")[0] == 0
    assert held_locks().semaphores == []


def test_text_of_others_can_not_control_the_terminal(kit, rk_locks):
    name = "evil\x1b[2J\n\u202e"
    assert Lock(name).acquire()
    outputs = [rk_locks("list"), rk_locks("show", name), rk_locks("list", "--json"), rk_locks("show", "evil")]
    assert all(text.replace("\n", "").isprintable() for _, *both in outputs for text in both)
    assert len(outputs[0][1].splitlines()) == 2
    assert rk_locks("release", name, typed="evil\\x1b[2J\\n\\u202e\n")[0] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("nonsense",),
        ("show",),
        ("release",),
        ("list", "a"),
        ("list", "--limit", "0"),
        ("list", "--limit", "10001"),
        ("list", "--limit", "many"),
        ("list", "--using", "nowhere"),
        ("show", ""),
        ("show", "x" * 600),
        ("release", "a", "--kind", "door"),
        ("release", "a", "--fence", "-1"),
        ("release", "a", "--fence", "9223372036854775808"),
        ("release", "a", "--json"),
    ],
)
def test_wrong_arguments_give_the_usage(kit, rk_locks, wrong):
    code, output, errors = rk_locks(*wrong)
    assert (code, output) == (2, "")
    assert errors.startswith("usage:")


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("show", "a"), ("release", "a", "--no-input")])
def test_redis_is_away(kit, rk_locks, arguments):
    kit.connect(AWAY)
    code, output, errors = rk_locks(*arguments)
    assert (code, output) == (69, "")
    assert errors.startswith("CommandError: Redis can't be reached")
    assert len(errors.splitlines()) == 1


def test_wrong_settings_are_no_traceback(kit, rk_locks):
    kit.options(CONNECTIONS={"default": {"URL": 3}})
    code, output, errors = rk_locks("list")
    assert (code, output) == (78, "")
    assert "REDIS_KIT['CONNECTIONS']" in errors


def test_options_of_every_command_may_stand_at_the_end(kit, rk_locks):
    assert rk_locks("list", "--settings", "tests.settings")[0] == 0


def test_another_connection_can_be_asked(kit, rk_locks, make_server):
    other = make_server()
    kit.options(CONNECTIONS={"default": kit.server.connection, "other": other.connection})
    with Lock("a", using="other"):
        assert rk_locks("list")[1] == "Nothing is held.\n"
        assert rk_locks("list", "--using", "other")[1].splitlines()[1].startswith("a ")


def test_call_command_works(many):
    out = io.StringIO()
    call_command("rk_locks", "show", "invoice:42", stdout=out)
    assert out.getvalue().startswith("invoice:42, lock\n")


def test_nothing_is_scanned(many, rk_locks, kit, commands):
    with commands(kit) as sent:
        for arguments in (("list",), ("show", "supplier"), ("release", "zzz")):
            rk_locks(*arguments)
    assert sent
    assert not {"SCAN", "KEYS", "HSCAN", "ZSCAN", "SSCAN"} & set(sent)


def test_it_works_on_every_kind_of_server(any_kit, rk_locks):
    leases = [Lock("a").acquire(), Lock("b").acquire(), Semaphore("c", 1).acquire()]
    assert len(rk_locks("list")[1].splitlines()) == 1 + len(leases)
    assert rk_locks("release", "a", "--no-input")[0] == 0
    assert rk_locks("release", "c", "--no-input")[0] == 0
    assert [line.split()[0] for line in rk_locks("list")[1].splitlines()] == ["NAME", "b"]
