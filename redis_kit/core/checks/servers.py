"""The live part of the system checks: the version, eviction policy and persistence of each server."""

import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from redis_kit.core import connections
from redis_kit.core.client.addresses import address
from redis_kit.core.conf import Problem, section
from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.settings import KitSettings

OLDEST = {"redis": (7, 0), "valkey": (7, 2)}
# The Lua use-after-free CVE-2025-49844 was fixed in these and in all later lines.
FIXED = {
    "redis": {(7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
    "valkey": {(7, 2): 11, (8, 0): 6, (8, 1): 4, (9, 0): 0},
}


def information(alias: str) -> dict[str, str]:
    """Return the fields of INFO of a connection's server; of one node for a Cluster. One round trip."""
    return parsed(connections.client(alias, "worker").call("INFO", "everything"))


def parsed(reply: bytes) -> dict[str, str]:
    """Return the fields of an INFO reply."""
    lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in lines if colon and not name.startswith("#")}


def problems(alias: str) -> Iterator[Problem]:
    """Yield the problems of the server behind an alias."""
    where = f"The server of REDIS_KIT['CONNECTIONS'][{alias!r}]"
    server = address(alias)
    if server.is_secure and server.all_options.get("ssl_cert_reqs", "required") in (None, "none", ssl.CERT_NONE):
        wrong = f"REDIS_KIT['CONNECTIONS'][{alias!r}] does not check the server's certificate: any server is accepted."
        yield Problem("W029", wrong, "Leave out SSL_CERT_REQS, and name the authority in SSL_CA_CERTS.")
    info: dict[str, str] = {}
    marker = ""
    try:
        info = information(alias)
        if not outdated(info) and not any(cluster_problems(alias, where, info)):
            marker = _claim(alias)  # with a SET that older servers do not have
    except (ConfigurationError, RedisFailure) as error:
        what = "could not be checked for another project with this prefix" if info else "could not be checked"
        yield Problem("W015", f"{where} {what}: {error}")
    if info:
        with translation.override(None):
            yield from [*cluster_problems(alias, where, info), *info_problems(where, info)]
    if marker:
        prefix = section(KitSettings).PREFIX
        yield Problem(
            "W012",
            f"{where} is used with the prefix {prefix!r} by another project too ({marker!r}), so their data mixes.",
            "Give each project its own REDIS_KIT['PREFIX'] or its own server.",
        )


def cluster_problems(alias: str, where: str, info: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problem of a connection to one server if that is a node of a Cluster."""
    if info.get("cluster_enabled") == "1" and not address(alias).cluster:
        wrong = _("%(where)s is a node of a Cluster, which refuses the keys of other nodes.") % {"where": where}
        remedy = _("In REDIS_KIT['CONNECTIONS'], write 'CLUSTER' in place of 'URL'.")
        yield Problem("E019", wrong, remedy)


def info_problems(where: str, info: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems that the fields of INFO show: version, eviction policy, persistence."""
    kind, text, version = _version(info)
    named = {"where": where, "server": f"{kind} {text}", "policy": info.get("maxmemory_policy", "noeviction")}
    if outdated(info):
        yield Problem("E012", _("%(where)s is %(server)s; Redis 7.0 or Valkey 7.2 is the oldest that works.") % named)
    for line, fixed in FIXED[kind].items():
        if version[:2] == line and version[2:] < (fixed,):
            newer = ".".join(map(str, (*line, fixed)))
            wrong = _("%(where)s is %(server)s, which has a known hole in Lua.")
            yield Problem("W014", wrong % named, _("Upgrade to %(version)s.") % {"version": newer})
    if named["policy"] != "noeviction":
        wrong = _(
            "%(where)s evicts keys when full (maxmemory-policy %(policy)s): locks and jobs would vanish unnoticed."
        )
        remedy = _("Set maxmemory-policy to noeviction, or give redis_kit a server of its own.")
        yield Problem("W010", wrong % named, remedy)
    if info.get("aof_enabled") == "0":
        wrong = _(
            "%(where)s has no append-only file: a crash loses all writes since the last snapshot, and all data if it "
            'makes none (save "").'
        )
        remedy = _("Set appendonly to yes if jobs and locks must survive a restart of the server.")
        yield Problem("W011", wrong % named, remedy)


def outdated(info: Mapping[str, str]) -> bool:
    """Tell whether the server is too old to run the scripts of the package."""
    kind, _text, version = _version(info)
    return bool(version) and version[:2] < OLDEST[kind]


def _version(info: Mapping[str, str]) -> tuple[str, str, tuple[int, ...]]:
    """Return the kind of a server and its version, as text and in numbers."""
    kind = "valkey" if "valkey_version" in info else "redis"
    text = info.get("valkey_version") or info.get("redis_version", "")
    return kind, text, tuple(int(part) for part in text.split(".")[:3] if part.isdecimal())


def _claim(alias: str) -> str:
    """Store this project's name under the prefix. Returns the name of another project that is there already, or ""."""
    from django.conf import settings

    own = settings.ROOT_URLCONF.rpartition(".")[0] or settings.ROOT_URLCONF
    key = f"{section(KitSettings).PREFIX}:{{project}}"
    there: Any = connections.client(alias, "worker").call("SET", key, own, "NX", "GET")
    return there.decode() if there and there.decode() != own else ""
