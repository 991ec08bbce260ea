"""The stack of a thread or task at this moment."""

import asyncio
import sys
import traceback
from typing import Any


def stack_of(owner: Any, thread: int) -> str:
    """Return the stack of a task, or of the thread with this identifier, as text; the thread may run on."""
    if isinstance(owner, asyncio.Task):
        if owner.done():
            return f"(the task {owner.get_name()} has ended)"
        if asyncio.current_task(owner.get_loop()) is not owner:
            return "".join(_suspended(owner.get_coro()))
    elif not owner.is_alive():
        return f"(the thread {owner.name} has ended)"
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame else "(its thread has ended)"


def _suspended(coroutine: Any) -> list[str]:
    lines: list[str] = []
    while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
        lines += traceback.format_stack(frame, limit=1)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return lines
