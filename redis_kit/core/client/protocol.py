"""Commands on the wire: RESP arrays of length-prefixed strings, so that no argument can be taken for a command."""

from redis_kit.core.steps import Command

try:
    from hiredis import pack_command
except ImportError:
    pack_command = None

_LENGTHS = [b"\r\n$%d\r\n" % length for length in range(256)]  # made once: half of the work of packing


def _packed(command: Command) -> bytes:
    """Return a command as it is sent. Text goes as UTF-8; a number as Python writes it, exact for floats too."""
    parts = [b"*%d" % len(command)]
    for argument in command:
        if isinstance(argument, str):
            argument = argument.encode()
        elif not isinstance(argument, bytes):
            argument = repr(argument).encode()
        length = len(argument)
        parts.append(_LENGTHS[length] if length < 256 else b"\r\n$%d\r\n" % length)
        parts.append(argument)
    parts.append(b"\r\n")
    return b"".join(parts)


packed = pack_command or _packed  # hiredis takes half of the time
