"""The base of everything with a name in Redis: its keys, its failure policy, and the two ways to run a flow."""

import logging
from collections.abc import Mapping
from copy import copy
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from redis_kit.core import conf, connections, flow
from redis_kit.core.errors import OutOfMemory, PermissionDenied, RedisFailure, RedisUnavailable
from redis_kit.core.keys import encode
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.settings import KitSettings
from redis_kit.core.signals import failure_policy_applied, send_safely
from redis_kit.core.text import unexpected

logger = logging.getLogger("redis_kit")
Kind = TypeVar("Kind", bound=type)
Result = TypeVar("Result")
NOTHING: Mapping[str, Any] = {}
_unavailable: set[tuple[str, str]] = set()  # components and connections for which a policy is answering now
_log_limit = LogRateLimit()


def with_own_init(kind: Kind) -> Kind:
    """Decorate a class that inherits ``__init__``: it gets a copy, so errors about arguments name this class.

    Python takes the name from the function. A copy costs a call nothing, as a wrapper would.
    """
    old: Any = kind.__init__  # type: ignore[misc]
    new = FunctionType(old.__code__, old.__globals__, old.__name__, old.__defaults__, old.__closure__)
    new.__kwdefaults__, new.__annotations__, new.__doc__ = old.__kwdefaults__, old.__annotations__, old.__doc__
    new.__module__, new.__qualname__ = kind.__module__, f"{kind.__qualname__}.__init__"
    kind.__init__ = new  # type: ignore[misc]
    return kind


class Primitive:
    """Something with a name in Redis. It holds no connection, so threads and tasks may share it."""

    component: ClassVar[str]
    settings: ClassVar[type[conf.Section]]
    profile: connections.Profile = "request"
    # Failures that the policy answers beside an outage: they concern some calls while others succeed.
    answered: ClassVar[tuple[type[RedisFailure], ...]] = ()

    #: Hints for names of arguments that other libraries use.
    argument_hints: ClassVar[Mapping[str, str]] = {}

    def __init__(self, name: str, *, using: str = "default", unknown: Mapping[str, Any] = NOTHING) -> None:
        if unknown:
            raise unexpected(type(self).__name__, type(self), unknown, self.argument_hints)
        self.encoded = encode(name)
        self.name, self.using = name, using

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def tag(self) -> str:
        """Return the hash tag, which decides the slot. All keys of one primitive share it."""
        return f"{self.component}:{self.encoded}"

    def key(self, part: str) -> str:
        """Return the key of one part, such as ``rk:{queues:mail}:ready``."""
        return f"{conf.section(KitSettings).PREFIX}:{{{self.tag()}}}:{part}"

    def policy(self) -> str:
        """Return the policy for calls while the server is unavailable: ``raise``, ``open``, ``closed``, ..."""
        return getattr(conf.section(self.settings), "ON_FAILURE", "raise")

    def run_flow(self, steps: flow.Flow[Result], **answers: Any) -> Result | Any:
        """Carry out a flow. If the server is unavailable, answer ``if_<policy>`` if the caller gave it."""
        try:
            result = flow.run(steps, connections.client(self.using, self.profile))
        except RedisFailure as error:
            return self._answer(error, answers)
        if _unavailable:
            self._recovered()
        return result

    async def arun_flow(self, steps: flow.Flow[Result], **answers: Any) -> Result | Any:
        """See run_flow()."""
        try:
            result = await flow.arun(steps, connections.aclient(self.using, self.profile))
        except RedisFailure as error:
            return self._answer(error, answers)
        if _unavailable:
            self._recovered()
        return result

    def _answer(self, error: RedisFailure, answers: dict[str, Any]) -> Any:
        if type(error) is PermissionDenied:
            keys = f"{conf.section(KitSettings).PREFIX}:{{{self.component}*"
            hint = f" The component {self.component!r} uses the keys ~{keys}."
            error.args = (f"{str(error).removesuffix(hint)}{hint}",)  # several calls may end with one error
        policy, pair = self.policy(), (self.component, self.using)
        if f"if_{policy}" not in answers or not isinstance(error, (RedisUnavailable, OutOfMemory, *self.answered)):
            raise error
        if not isinstance(error, RedisUnavailable):  # other calls succeed, so that none of these tells of its end
            self._note(error, policy)
        elif pair not in _unavailable:
            _unavailable.add(pair)
            logger.warning("%s: Redis failed; %s: %s", self.component, self._effect(policy), error)
            send_safely(failure_policy_applied, type(self), component=self.component, policy=policy, error=error)
        return copy(answers[f"if_{policy}"])  # a list is that of one caller

    def _note(self, error: RedisFailure, policy: str) -> None:
        if _log_limit.allows(f"{self.component} {self.using} {type(error).__name__}"):
            logger.error("%s: a call failed; %s: %s", self.component, self._effect(policy), error)
            send_safely(failure_policy_applied, type(self), component=self.component, policy=policy, error=error)

    def _effect(self, policy: str) -> str:
        """Return what a policy means for callers."""
        return f"{self.settings.policies.get(policy, 'a default is returned')} (policy {policy!r})"

    def _recovered(self) -> None:
        if (self.component, self.using) in _unavailable:
            _unavailable.discard((self.component, self.using))
            logger.warning("%s: Redis answers again.", self.component)


conf.on_change(_unavailable.clear)
