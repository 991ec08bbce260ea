"""Where a thread or task is at this moment."""

import asyncio
import sys
import traceback
from typing import Any


def stack_of(taker: Any, thread: int) -> str:
    """Return the stack of a task, or of the thread with this identifier, as text; taken while it may run on."""
    if isinstance(taker, asyncio.Task):
        if taker.done():
            return f"(the task {taker.get_name()} is over)"
        if asyncio.current_task(taker.get_loop()) is not taker:
            return "".join(_suspended(taker.get_coro()))
    elif not taker.is_alive():
        return f"(the thread {taker.name} is over)"
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame else "(its thread is over)"


def _suspended(coroutine: Any) -> list[str]:
    lines: list[str] = []
    while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
        lines += traceback.format_stack(frame, limit=1)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return lines
