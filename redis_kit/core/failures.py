"""One map from a client's errors to the kit's own."""

from redis import exceptions as client

from redis_kit.core.errors import KeyConflict, OutOfMemory, PermissionDenied, RedisFailure, RedisUnavailable

# Replies of a server that can't serve now: the connection is dropped, so that the next call asks anew who is primary.
DROP = ("READONLY", "UNBLOCKED", "MASTERDOWN", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "BUSY")
NO_NUMBER = "value is not an integer"  # a counter that holds something else
REFUSED = (client.AuthenticationError, client.AuthorizationError, client.NoPermissionError)


def translate(error: Exception, *, sent: bool, where: str = "the server") -> Exception:
    """Return the kit's error for a client's; ``sent`` says whether the command had left this process.

    Errors that mean a defect in the caller's command come back as they are.
    """
    if isinstance(error, RedisFailure):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, REFUSED) or text.startswith(("NOAUTH", "NOPERM", "WRONGPASS")):
        return PermissionDenied(f"Redis refused access ({where}): {text}")
    if isinstance(error, client.OutOfMemoryError) or text.startswith("OOM"):
        return OutOfMemory(f"Redis is full ({where}) and refuses new data; raise its maxmemory or remove keys: {text}")
    if text.startswith("WRONGTYPE") or NO_NUMBER in text:
        return KeyConflict(f"A key is not of the kit's type ({where}), something else wrote to it: {text}")
    if must_drop(error):
        return RedisUnavailable(f"Redis can't serve now ({where}): {text}", indeterminate=False)
    if isinstance(error, (client.ConnectionError, client.TimeoutError, OSError, client.ClusterError)):
        return RedisUnavailable(f"Redis can't be reached ({where}): {text}", indeterminate=sent)
    return error


def must_drop(error: Exception) -> bool:
    """Say whether the reply means that this connection leads to the wrong server, or to one not ready."""
    if isinstance(error, (client.ReadOnlyError, client.BusyLoadingError, client.ClusterDownError)):
        return True
    return isinstance(error, client.ResponseError) and str(error).partition(" ")[0] in DROP
