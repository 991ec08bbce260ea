"""The map from the errors of redis-py to those of redis_kit."""

import re

from redis import exceptions as client

from redis_kit.core.errors import (
    NO_NUMBER,
    AuthenticationFailed,
    CommandFailed,
    ConfigurationError,
    KeyConflict,
    OutOfMemory,
    PermissionDenied,
    RedisKitError,
    RedisUnavailable,
)

# Replies of a server that can't serve now: the connection is dropped, so that the next call asks again for the primary.
DROP = ("READONLY", "UNBLOCKED", "MASTERDOWN", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "BUSY")
_DENIED = re.compile("AuthenticationError|AuthorizationError|NoPermissionError|NOAUTH|WRONGPASS|NOPERM")
# A refusal of an ACL inside a script has no code: first the text of Valkey and Redis from 7.2 on, then of older Redis.
IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")
REFUSED = (client.AuthorizationError, client.NoPermissionError)
ACL_HINT = "manage.py rk_doctor and ACL LOG name what is missing; see docs/howto/acl.md."
OF_SENTINELS = "+ping +sentinel|masters"  # the rights that a user of the Sentinels needs
# A server that wants a password reads no large command before it: it answers with this, and closes the connection.
UNAUTHENTICATED = "Protocol error: unauthenticated"
# Scripts begin with a line "#!lua", which servers before Redis 7.0 can't read.
NO_FLAGS = "unexpected symbol near '#'"
# Lua code that no data makes right. Other errors of a script may come from what a key holds.
MISTAKE = re.compile(
    r"Error compiling script|user_script:\d+: (?:Script attempted to access|attempt to call|Attempt to modify)"
)
# No reply came, or it does not follow Redis's protocol.
LOST = (client.ConnectionError, client.TimeoutError, OSError, client.ClusterError, client.InvalidResponse)
# Answers for the sender of the command to act on.
REDIRECTED = (client.NoScriptError, client.AskError, client.TryAgainError)
MOVED = client.MovedError
# Answers of a node of a Cluster to a client that takes it for a server by itself.
OF_CLUSTER = (client.AskError, client.TryAgainError, client.ClusterCrossSlotError)


def translate(error: Exception, *, sent: bool, where: str = "the server", in_cluster: bool = False) -> Exception:
    """Return the error of redis_kit for one of redis-py; ``sent`` says whether the command had left this process.

    A missing script, errors of other libraries, and redirections, if the client is part of one ``in_cluster``, are
    returned as they are.
    """
    if isinstance(error, (RedisKitError, client.NoScriptError)) or (in_cluster and isinstance(error, REDIRECTED)):
        return error
    if isinstance(error, OF_CLUSTER) and not in_cluster:
        return ConfigurationError(
            f"The server ({where}) is a node of a Cluster. In REDIS_KIT['CONNECTIONS'], write 'CLUSTER' in place of "
            "'URL'."
        )
    text = (str(error) or type(error).__name__).removeprefix("ERR ")  # left by a script that ran inside another one
    if "cluster support disabled" in text:
        return ConfigurationError(
            f"The server ({where}) is not a node of a Cluster. In REDIS_KIT['CONNECTIONS'], write 'URL' in place of "
            "'CLUSTER'."
        )
    if type(error).__name__ == "MasterNotFoundError" and _DENIED.search(text):
        return AuthenticationFailed(
            f"The Sentinels refused access ({where}), so the primary's address is not known. Give the connection the "
            f"user name and password of the Sentinels as 'SENTINEL_KWARGS'. That user needs {OF_SENTINELS}: {text}"
        )
    if isinstance(error, client.AuthenticationError) or text.startswith(("NOAUTH", "WRONGPASS")):
        return AuthenticationFailed(f"Redis refused access ({where}): {text}")
    if text.startswith(UNAUTHENTICATED):
        return AuthenticationFailed(
            f"Redis refused access ({where}): it wants a password, and this connection has none: {text}"
        )
    if isinstance(error, REFUSED) or text.removeprefix("ERR ").startswith(("NOPERM", *IN_SCRIPT)):
        return PermissionDenied(f"Redis refused access ({where}): {text.rstrip('.')}. {ACL_HINT}")
    if isinstance(error, client.OutOfMemoryError) or text.startswith("OOM"):
        return OutOfMemory(f"Redis is full ({where}) and refuses new data; raise its maxmemory or remove keys: {text}")
    if text.startswith("WRONGTYPE") or any(said in text for said in NO_NUMBER):
        return KeyConflict(f"A key is not of the kit's type ({where}), something else wrote to it: {text}")
    if text.endswith(NO_FLAGS):
        return CommandFailed(f"The server is too old ({where}): Redis 7.0 or Valkey 7.2 is the oldest that works.")
    if MISTAKE.match(text):
        return ConfigurationError(f"The Lua code of a script is wrong ({where}): {text}")
    if cannot_serve(error):
        return RedisUnavailable(f"Redis can't serve now ({where}): {text}", indeterminate=False)
    if text.startswith("No master found for") and " : " not in text:  # no Sentinel has failed
        text += ". The Sentinels know no primary of this name that works. Is 'SERVICE' right?"
    if isinstance(error, LOST):
        return RedisUnavailable(f"Redis can't be reached ({where}): {text}", indeterminate=sent)
    return CommandFailed(f"Redis failed ({where}): {text}") if isinstance(error, client.RedisError) else error


def must_drop(error: BaseException) -> bool:
    """Tell whether the connection can't be used after this error. It can after a plain error reply."""
    return not isinstance(error, client.ResponseError) or closes(error) or cannot_serve(error)


def closes(error: client.ResponseError) -> bool:
    """Tell whether the server closes the connection after this reply, so that no other one follows."""
    return str(error).startswith("Protocol error")


def cannot_serve(error: Exception) -> bool:
    """Tell whether the reply means that this connection leads to the wrong server, or to one not ready."""
    if isinstance(error, (client.ReadOnlyError, client.BusyLoadingError, client.ClusterDownError)):
        return True
    return isinstance(error, client.ResponseError) and str(error).partition(" ")[0] in DROP
