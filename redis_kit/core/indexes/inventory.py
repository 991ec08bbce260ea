"""All indexes of a component: those that are stored on each connection, and those of models that are not yet."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core import conf
from redis_kit.core.client.addresses import aliases
from redis_kit.core.errors import InvalidValue, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.indexes.generations import names
from redis_kit.core.indexes.model_index import find_index, indexes
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call

MOST = 1000  # indexes that are read on a connection, beside those of models


class Contents(NamedTuple):
    """The number of indexes, those that were read, and the errors of connections that may have more."""

    total: int
    infos: list[Any]
    unavailable: Sequence[RedisUnavailable] = ()

    def check_available(self) -> None:
        """Raise the first of the errors."""
        for error in self.unavailable:
            raise error


class Inventory:
    """The indexes of a component. A subclass describes one of them, with its ``name`` and the alias ``using``."""

    primitive: ClassVar[type[Primitive]]
    #: The class of indexes of models; each has a ``name``, and the alias ``using``.
    kind: ClassVar[type[Any]]
    #: The attribute of a description that has the number of its values or rows.
    counted: ClassVar[str]

    def models(self) -> list[Any]:
        """Return the indexes of models."""
        return indexes(self.kind)

    def is_of_model(self, info: Any) -> bool:
        """Return whether an index is that of a model."""
        return any((each.name, each.using) == (info.name, info.using) for each in self.models())

    def describe(self, index: Primitive) -> Flow[Any]:
        """Return what is stored of an index; None if there is none. Two round trips at most."""
        raise NotImplementedError

    def describe_model(self, index: Any) -> Flow[Any]:
        """Return what is stored of the index of a model. Two round trips at most."""
        raise NotImplementedError

    def clear(self, info: Any) -> None:
        """Delete an index."""
        raise NotImplementedError

    def size(self, info: Any) -> int:
        """Return how many values or rows an index holds."""
        return int(getattr(info, self.counted))

    def order(self, info: Any) -> Any:
        """Return by what indexes are sorted."""
        return info.name

    def read(self, using: str) -> Flow[Contents]:
        """Return the indexes of a connection: all of models, and at most 1,000 others. Two round trips.

        A connection that this project names nowhere for them may be unavailable: its error is returned.
        """
        models = {each.name: each for each in self.models() if each.using == using}
        of_models = gather([self.describe_model(each) for each in models.values()])
        try:
            flows: list[Flow[Any]] = [of_models, self._read_others(using, models)]
            described, (total, others) = yield from gather(flows)
        except RedisFailure as error:
            if self._is_used(using):
                raise
            return Contents(0, [], [error] if isinstance(error, RedisUnavailable) else [])
        infos = [*described, *others]
        return self.merged([Contents(max(total, len(infos)), infos)])

    def _read_others(self, using: str, models: Mapping[str, Any]) -> Flow[tuple[int, list[Any]]]:
        """Return the number of names if there are more than those that are read, and the indexes of those."""
        key, most = names(self.primitive.component), MOST + len(models)
        total, members = yield Batch([Call("ZCARD", key), Call("ZRANGE", key, 0, most - 1)])
        others = [name.decode() for name in members if name.decode() not in models]
        infos = yield from gather([self.describe(self.primitive(name, using=using)) for name in others])
        # Names of indexes that were cleared stay listed.
        return total if total > most else 0, [info for info in infos if info]

    def merged(self, parts: Iterable[Contents]) -> Contents:
        """Return the indexes of several connections as those of one."""
        both = list(parts)
        infos = sorted((info for part in both for info in part.infos), key=self.order)
        return Contents(sum(part.total for part in both), infos, [error for part in both for error in part.unavailable])

    def read_all(self, using: str | None = None) -> Contents:
        """Return the indexes of one connection, or of all. See read()."""
        return self.merged(each.run_flow(self.read(each.using)) for each in self._named("all", using))

    def find(self, name: str, using: str | None = None, *, any_case: bool = False) -> list[Any]:
        """Return the indexes with a name: one on each connection that has it.

        With ``any_case``, if there is none, that of a model to which find_index() gives the name.
        """
        infos, outage = list[Any](), None
        for index in self._named(name, using):
            try:
                info = index.run_flow(self.describe(index))
            except RedisFailure as error:
                if using or self._is_used(index.using):
                    raise
                outage = error if isinstance(error, RedisUnavailable) else outage
            else:
                infos += [info] if info else []
        if outage and not infos:
            raise outage
        if not infos and any_case:
            with suppress(InvalidValue):
                return self.find(find_index(self.kind, name).name, using)
        return infos

    def find_one(self, name: str, using: str | None = None, *, any_case: bool = False) -> Any:
        """See find(). Raises InvalidValue if there is no index with a name, or one on several connections."""
        infos = self.find(name, using, any_case=any_case)
        if len(infos) == 1:
            return infos[0]
        several = ", ".join(info.using for info in infos)
        if several:
            raise InvalidValue(
                _("Nothing was done: %(name)s is on several connections: %(several)s.")
                % {"name": name, "several": several}
            )
        raise InvalidValue(_("Nothing was done: %s does not exist.") % name)

    def _is_used(self, using: str) -> bool:
        default = getattr(conf.section(self.primitive.settings), "USING", "default")
        return using == default or any(each.using == using for each in self.models())

    def _named(self, name: str, using: str | None) -> list[Primitive]:
        return [self.primitive(name, using=alias) for alias in ([using] if using else aliases())]
