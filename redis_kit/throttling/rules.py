"""Rules that operators set on a throttle for a limited time: bans, exemptions and overrides."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_number, whole_number
from redis_kit.core.values.rates import Rate, parse
from redis_kit.core.values.sequences import batched
from redis_kit.throttling.engine import memory
from redis_kit.throttling.engine.base import AnyThrottle, BaseThrottle, asking, read_together

LIMIT = 10_000  # identities with a rule

SET = scripts.load("redis_kit.throttling", "set_rule")
LIFT = scripts.load("redis_kit.throttling", "lift_rule")
LIST = scripts.load("redis_kit.throttling", "list_rules")
READ = scripts.load("redis_kit.throttling", "read_rules")
FIND = scripts.load("redis_kit.throttling", "find_identity")
RESET = scripts.load("redis_kit.throttling", "reset")

LONGEST = 366 * 86_400  # seconds
BATCH_SIZE = 500  # rules that one script reads
HASH_LENGTH = 22
KINDS: dict[str, Literal["ban", "exempt", "override"]] = {"b": "ban", "x": "exempt", "r": "override"}


class Rule(NamedTuple):
    """A rule: its kind, the hash of the identity ("" for all identities), and when it ends.

    ``shown`` is what ``OFFENDERS`` allows to store of the identity. ``rates`` are those of an override, as text.
    """

    kind: Literal["ban", "exempt", "override"]
    identity_hash: str
    shown: str
    until: datetime
    rates: str


RuleList = list[Rule]  # inside the class of rules, the method list() hides the type


def shown(throttle: BaseThrottle, identity_hash: str) -> Flow[str]:
    """Return what the lists of a throttle hold of an identity; "" if they hold nothing. One round trip."""
    keys = throttle.keys_of(identity_hash)
    entry = yield FIND([keys.rules, keys.offenders], [identity_hash])
    return str(entry.decode()[HASH_LENGTH + 1 :])


def listed(throttle: BaseThrottle, limit: int) -> Flow[tuple[int, list[Rule]]]:
    """Return the number of rules in force, and the rules: first that for all identities, then those that end first.

    Two round trips.
    """
    count, members = yield _index(throttle, limit)
    entries = {entry[:HASH_LENGTH]: entry for entry in map(bytes.decode, members)}
    keys = [throttle.keys_of("").override, *(throttle.keys_of(each).standing for each in entries)]
    replies = yield Batch([READ(some, [throttle.now()]) for some in batched(keys, BATCH_SIZE)])
    stored = [each for _, *texts in replies for each in texts]
    rules = _rules([replies[0][0], *stored], ["", *entries], ["", *entries.values()])
    # The index keeps an identity whose rule was lifted until the rule would have ended.
    return count, sorted(filter(None, rules), key=lambda rule: (rule.identity_hash != "", rule.until))[:limit]


def of_identities(throttle: BaseThrottle, hashes: Sequence[str]) -> Flow[list[Rule]]:
    """Return the rules of some identities, without what lists show of these. One round trip."""
    reply = yield READ([throttle.keys_of(each).standing for each in hashes], [throttle.now()])
    return list(filter(None, _rules(reply, hashes, [""] * len(hashes))))


def _index(throttle: BaseThrottle, limit: int) -> ScriptCall:
    """Return the step that counts the rules, and lists at most ``limit`` identities that have one."""
    keys = throttle.keys_of("")
    return LIST([keys.rules, keys.override], [throttle.now(), limit])


def _rules(reply: Sequence[Any], hashes: Sequence[str], entries: Sequence[str]) -> list[Rule | None]:
    stamp, *stored = reply
    pairs = zip(stored[::2], stored[1::2], strict=True)
    return [
        _rule(text.decode(), ends, int(stamp), identity_hash, entry[HASH_LENGTH + 1 :])
        for identity_hash, entry, (text, ends) in zip(hashes, entries, pairs, strict=True)
    ]


def _rule(text: str, ends: int, stamp: int, identity_hash: str, shown: str) -> Rule | None:
    kind = KINDS.get(text[:1])
    if kind == "ban":
        until = int(text.split()[1])
        return Rule(kind, identity_hash, shown, _datetime(until // 1000), "") if until > stamp else None
    return Rule(kind, identity_hash, shown, _datetime(ends), text.partition("#")[2]) if kind else None


def _rates(rates: Any) -> tuple[Rate, ...]:
    parsed = parse(rates)
    if not parsed:
        raise InvalidValue("An override needs rates; to remove the limit of an identity, exempt it.")
    if never := next((rate for rate in parsed if not rate.limit), None):
        raise InvalidValue(f"The rate {never} would allow nothing and can't be counted: ban the identity instead.")
    text = "; ".join(map(str, parsed))
    if parse(text) != parsed:
        raise InvalidRate(f"The rates {shortened(rates)} can't be written as text: {text!r} stands for others.")
    return parsed


def can_have_rules(throttle: BaseThrottle) -> bool:
    """Return whether rules take effect: without rates, or with a rate of 0, the answer never changes."""
    return 0 < len(throttle.rates) == len(throttle.counted_rates)


def _milliseconds(throttle: BaseThrottle, seconds: float) -> int:
    if not can_have_rules(throttle):
        raise InvalidValue(
            f"The throttle {throttle.name!r} gives all identities the same answer without asking the server, so no "
            "rule can take effect: build it with rates above 0."
        )
    if not is_number(seconds) or not 0.001 <= seconds <= LONGEST:
        raise InvalidValue(
            f"seconds must be from 0.001 to {LONGEST:,}, which is 366 days, not {shortened(seconds)}: every rule ends. "
            "Set it again to extend it."
        )
    return round(seconds * 1000)


def _forget(throttle: BaseThrottle, identity_hash: str) -> None:
    """Forget the refusals of all throttles with this name, whatever their rates."""
    start, end = f"{throttle.using} ", f" {throttle.encoded}"
    memory.forget(
        lambda throttle_id, identity: (
            throttle_id.startswith(start) and throttle_id.endswith(end) and identity_hash in ("", hashed(identity))
        )
    )


def _datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def reset_flow(throttle: BaseThrottle, identity_hash: str, identity: str = "") -> Flow[bool]:
    """Forget the calls of an identity and its automatic ban. One round trip. ``identity`` may be unknown."""
    keys = throttle.keys_of(identity_hash)
    entry = throttle.entry_of(identity_hash, identity) if identity else ""
    removed = yield RESET([keys.state, keys.standing, keys.rules], [identity_hash, entry])
    # A hash of each identity that this process remembers would take 3 us.
    memory.forget(
        lambda throttle_id, each: (
            throttle_id == throttle.id and (each == identity if identity else hashed(each) == identity_hash)
        )
    )
    throttle.local_buckets.forget(identity)
    return bool(removed)


def reset_by_hash(throttle: BaseThrottle, identity_hash: str) -> bool:
    """Do the same as Throttle.reset(), given the hash that lists show. One round trip. Raises RedisUnavailable."""
    return bool(throttle.run_flow(reset_flow(throttle, identity_hash)))


class Rules:
    """The rules of a throttle, which replace its rates for one identity, or for all, until they end.

    A rule holds for all throttles of this name and connection, in every process. It takes effect at the next call that
    asks the server. This process forgets the refusals that it remembers; other processes ask again within ``REMEMBER``
    seconds. An identity has one rule, the last one that was set. It takes precedence over the override for all.

    ``identity`` is the argument of ``hit()``. ``identity_hash`` is the hash that lists show; give one of the two. All
    methods raise InvalidName and InvalidValue for wrong arguments, and RedisUnavailable.
    """

    def __init__(self, throttle: BaseThrottle) -> None:
        self.throttle = throttle
        self.run_flow, self.arun_flow = throttle.run_flow, throttle.arun_flow

    @operation
    def ban(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Flow[Rule]:
        """Refuse every call of an identity for a time of up to 366 days, and return the rule. One round trip."""
        return self._set("b", "", self._subject(identity, identity_hash, needed=True), seconds)

    @operation
    def exempt(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Flow[Rule]:
        """Allow every call of an identity for a time of up to 366 days, without counting. One round trip."""
        return self._set("x", "", self._subject(identity, identity_hash, needed=True), seconds)

    @operation
    def override(
        self, rates: object, seconds: float, identity: str | int | None = None, *, identity_hash: str = ""
    ) -> Flow[Rule]:
        """Set other rates for an identity, or without one for all identities, for a time of up to 366 days.

        ``rates`` follow the grammar of rates and are above 0; the strategy stays that of the throttle. An identity with
        its own rates starts from zero, and again when they are lifted. Rates for all identities keep what was counted
        before. One round trip. Raises InvalidRate.
        """
        subject, parsed = self._subject(identity, identity_hash), _rates(rates)
        algorithm, text = type(self.throttle.algorithm)(parsed), "; ".join(map(str, parsed))
        rule = f"r {algorithm.kind} {' '.join(map(str, algorithm.numbers))}#{text}"
        return self._set(rule, text, subject, seconds)

    @operation
    def lift(self, identity: str | int | None = None, *, identity_hash: str = "") -> Flow[bool]:
        """End the rule of an identity, or without one the override for all. Return whether there was one.

        Ends an automatic ban too, and resets the count that makes the next ban longer. One round trip.
        """
        named, entry = self._subject(identity, identity_hash)
        throttle, keys = self.throttle, self.throttle.keys_of(named)
        if named:
            lifted = yield LIFT([keys.state, keys.standing, keys.rules], [throttle.now(), named, entry])
        else:
            lifted = yield Call("DEL", keys.override)
        _forget(throttle, named)
        return bool(lifted)

    @operation
    def of(self, identity: str | int | None = None, *, identity_hash: str = "") -> Flow[Rule | None]:
        """Return the rule of an identity, or without one the override for all. One round trip."""
        named, entry = self._subject(identity, identity_hash)
        keys = self.throttle.keys_of(named)
        steps = [READ([keys.standing if named else keys.override], [self.throttle.now()])]
        if named and not entry:
            steps.append(FIND([keys.rules, keys.offenders], [named]))
        stamp_and_rule, *found = yield Batch(steps)
        return _rules(stamp_and_rule, [named], [found[0].decode() if found else entry])[0]

    @operation
    def list(self, limit: int = 100) -> Flow[RuleList]:
        """Return the rules in force, with automatic bans: first the override for all, then those that end first.

        At most ``limit`` rules, 1 to 10,000. Two round trips.
        """
        return (yield from listed(self.throttle, whole_number("limit", limit, (1, LIMIT))))[1]

    def _subject(self, identity: str | int | None, identity_hash: str, *, needed: bool = False) -> tuple[str, str]:
        """Return the hash of an identity, "" for all, and its entry in lists, "" to keep the entry that it has."""
        if identity is None and not identity_hash:
            if needed:
                raise InvalidValue("Give the identity, or as identity_hash the hash that lists show.")
            return "", ""
        if identity is None:
            if not isinstance(identity_hash, str) or not re.fullmatch(f"[A-Za-z0-9_-]{{{HASH_LENGTH}}}", identity_hash):
                raise InvalidValue(
                    f"identity_hash must be the {HASH_LENGTH} characters that lists show, "
                    f"not {shortened(identity_hash)}."
                )
            return identity_hash, ""
        if identity_hash:
            raise InvalidValue("Give identity or identity_hash, not both: they name the same identity.")
        entry = self.throttle.entry(self.throttle.checked(identity, 1))
        return entry[:HASH_LENGTH], entry

    def _set(self, rule: str, rates: str, subject: tuple[str, str], seconds: float) -> Flow[Rule]:
        throttle, (identity_hash, entry) = self.throttle, subject
        keys, ttl_ms = throttle.keys_of(identity_hash), _milliseconds(throttle, seconds)
        if identity_hash:
            args = [throttle.now(), identity_hash, entry, rule, ttl_ms]
            ends, stored = yield SET([keys.state, keys.standing, keys.rules, keys.offenders], args)
        else:
            stored, read = b"", READ([keys.override], [throttle.now()])
            _, (_, _, ends) = yield Batch([Call("SET", keys.override, rule, "PX", ttl_ms), read])
        _forget(throttle, identity_hash)
        return Rule(KINDS[rule[0]], identity_hash, stored.decode()[HASH_LENGTH + 1 :], _datetime(ends), rates)

    aban = twin(ban)
    aexempt = twin(exempt)
    aoverride = twin(override)
    alift = twin(lift)
    aof = twin(of)
    alist = twin(list)


@asking
def counts(throttles: Sequence[AnyThrottle]) -> Flow[dict[AnyThrottle, int]]:
    """Return how many rules each throttle has. One round trip for each connection."""
    return read_together(throttles, _counts)


def _counts(throttles: Sequence[AnyThrottle]) -> Flow[dict[AnyThrottle, int]]:
    replies = yield Batch([_index(throttle, 0) for throttle in throttles])
    return {throttle: count for throttle, (count, _) in zip(throttles, replies, strict=True)}
