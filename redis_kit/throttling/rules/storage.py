"""How rules are kept on the server: what is checked before they are set, and how they are read."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import shortened
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.values.rates import InvalidRate, Rate, parse

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

SET = scripts.load("redis_kit.throttling", "set_rule")
LIFT = scripts.load("redis_kit.throttling", "lift_rule")
LIST = scripts.load("redis_kit.throttling", "list_rules")
READ = scripts.load("redis_kit.throttling", "read_rules")
FIND = scripts.load("redis_kit.throttling", "find_caller")

LONGEST = 366 * 86_400
AT_ONCE = 500  # rules that one script reads
HASH = 22  # characters
KINDS: dict[str, Literal["ban", "exempt", "override"]] = {"b": "ban", "x": "exempt", "r": "override"}


class Rule(NamedTuple):
    """A rule, until when it holds, and whose calls it is for: ``who`` is the hash of a caller, "" for everybody.

    ``shown`` is what ``OFFENDERS`` lets lists show of the caller. ``rates`` are those of an override, as text.
    """

    kind: Literal["ban", "exempt", "override"]
    who: str
    shown: str
    until: datetime
    rates: str


class Target(NamedTuple):
    """Whose rule is meant: the hash of a caller, "" for everybody, and how lists are to name it, "" for as they do."""

    who: str
    label: str


def target(throttle: "Throttle", identity: str | int | None, who: str) -> Target:
    """Return whose rule is meant. Raises InvalidName and InvalidValue."""
    if identity is None and not who:
        return Target("", "")
    if identity is None:
        if not isinstance(who, str) or not re.fullmatch(f"[A-Za-z0-9_-]{{{HASH}}}", who):
            raise InvalidValue(f"who must be the {HASH} characters by which lists name a caller, not {shortened(who)}.")
        return Target(who, "")
    if who:
        raise InvalidValue("Give identity or who, not both: they name the same caller.")
    label = throttle.label(throttle.checked(identity, 1))
    return Target(label[:HASH], label)


def ban(throttle: "Throttle", caller: Target, seconds: float) -> Flow[Rule]:
    """Return the steps that ban a caller."""
    return _set(throttle, caller, "b", "", _milliseconds(throttle, seconds))


def exempt(throttle: "Throttle", caller: Target, seconds: float) -> Flow[Rule]:
    """Return the steps that exempt a caller."""
    return _set(throttle, caller, "x", "", _milliseconds(throttle, seconds))


def override(throttle: "Throttle", whose: Target, rates: Any, seconds: float) -> Flow[Rule]:
    """Return the steps that set other rates."""
    found, lasting = _rates(throttle, rates), _milliseconds(throttle, seconds)
    counting, text = type(throttle.counting)(found), "; ".join(map(str, found))
    rule = f"r {counting.kind} {' '.join(map(str, counting.numbers))}#{text}"
    if whose.who:
        return _set(throttle, whose, rule, text, lasting)
    return _set_for_all(throttle, rule, text, lasting)


def lift(throttle: "Throttle", whose: Target) -> Flow[bool]:
    """Take a rule away."""
    state, standing, everybody, _, _, rules = throttle.keys_of(whose.who)
    step = LIFT([state, standing, rules], [throttle.now(), whose.who]) if whose.who else Call("DEL", everybody)
    lifted = yield step
    _forget(throttle, whose.who)
    return bool(lifted)


def read(throttle: "Throttle", whose: Target) -> Flow[Rule | None]:
    """Return a rule, or None."""
    _, standing, everybody, _, offenders, rules = throttle.keys_of(whose.who)
    steps = [READ([standing if whose.who else everybody], [throttle.now()])]
    if whose.who and not whose.label:
        steps.append(FIND([rules, offenders], [whose.who]))
    replies = yield Batch(steps)
    label = replies[1].decode() if len(steps) == 2 else whose.label
    return _rules(replies[0], [whose.who], [label])[0]


def listed(throttle: "Throttle", limit: int) -> Flow[list[Rule]]:
    """Return the rules that hold, that for everybody first."""
    _, members = yield index(throttle, limit)
    labels = {"": ""} | {label[:HASH]: label for label in map(bytes.decode, members)}
    keys = [throttle.keys_of(who)[1 if who else 2] for who in labels]
    parts = [slice(start, start + AT_ONCE) for start in range(0, len(keys), AT_ONCE)]
    replies = yield Batch([READ(keys[part], [throttle.now()]) for part in parts])
    whos, shown = list(labels), list(labels.values())
    found = [
        rule for part, reply in zip(parts, replies, strict=True) for rule in _rules(reply, whos[part], shown[part])
    ]
    # A caller stays in the index when its rule is gone, until it would have ended.
    return sorted(filter(None, found), key=lambda rule: (rule.who != "", rule.until))[:limit]


def index(throttle: "Throttle", limit: int) -> ScriptCall:
    """Return the step that counts the rules and names so many callers that have one."""
    _, _, everybody, _, _, rules = throttle.keys_of("")
    return LIST([rules, everybody], [throttle.now(), limit])


def _set(throttle: "Throttle", caller: Target, rule: str, rates: str, lasting: int) -> Flow[Rule]:
    state, standing, _, _, offenders, rules = throttle.keys_of(caller.who)
    args = [throttle.now(), caller.who, caller.label, rule, lasting]
    ends, label = yield SET([state, standing, rules, offenders], args)
    _forget(throttle, caller.who)
    return Rule(KINDS[rule[0]], caller.who, label.decode()[HASH + 1 :], _moment(ends), rates)


def _set_for_all(throttle: "Throttle", rule: str, rates: str, lasting: int) -> Flow[Rule]:
    key = throttle.keys_of("")[2]
    _, (_, _, ends) = yield Batch([Call("SET", key, rule, "PX", lasting), READ([key], [throttle.now()])])
    _forget(throttle, "")
    return Rule("override", "", "", _moment(ends), rates)


def _rules(reply: Sequence[Any], whos: Sequence[str], labels: Sequence[str]) -> list[Rule | None]:
    stamp, *kept = reply
    pairs = zip(kept[::2], kept[1::2], strict=True)
    return [
        _rule(text.decode(), ends, int(stamp), who, label[HASH + 1 :])
        for who, label, (text, ends) in zip(whos, labels, pairs, strict=True)
    ]


def _rule(text: str, ends: int, stamp: int, who: str, shown: str) -> Rule | None:
    kind = KINDS.get(text[:1])
    if kind == "ban":
        until = int(text.split()[1])
        return Rule(kind, who, shown, _moment(until // 1000), "") if until > stamp else None
    return Rule(kind, who, shown, _moment(ends), text.partition("#")[2]) if kind else None


def _rates(throttle: "Throttle", rates: Any) -> tuple[Rate, ...]:
    found = parse(rates)
    if not found:
        raise InvalidValue("An override needs rates; to set no limit to a caller, exempt it.")
    if never := next((rate for rate in found if not rate.limit), None):
        raise InvalidValue(f"The rate {never} would let nothing pass, which is no rate to count by: ban the caller.")
    text = "; ".join(map(str, found))
    if parse(text) != found:
        raise InvalidRate(f"The rates {shortened(rates)} can't be written as text: {text!r} stands for others.")
    return found


def _milliseconds(throttle: "Throttle", seconds: float) -> int:
    if len(throttle.limited) != len(throttle.rates) or not throttle.rates:
        raise InvalidValue(
            f"The throttle {throttle.name!r} gives everybody the same answer without asking the server, so no rule can "
            "take hold: build it with rates that are not 0."
        )
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0.001 <= seconds <= LONGEST:
        raise InvalidValue(
            f"seconds must be from 0.001 to {LONGEST:,}, which is 366 days, not {shortened(seconds)}: every rule ends. "
            "Set it again to prolong it."
        )
    return round(seconds * 1000)


def _forget(throttle: "Throttle", who: str) -> None:
    """Forget refusals by this name, whatever the rates of the throttle that remembers them."""
    start, end = f"{throttle.using} ", f" {throttle.encoded}"
    refusal_cache.forget_where(
        lambda name, caller: name.startswith(start) and name.endswith(end) and who in ("", hashed(caller))
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
