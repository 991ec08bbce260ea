"""Runs of ``rk_demo`` that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.demo.support.demo_process import Demo

Start = Callable[..., Demo]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for the runs of a test file. Its path is short enough for a socket."""
    return tmp_path_factory.mktemp("d")


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Start]:
    """Return a function that starts the command with arguments and environment variables."""
    started: list[Demo] = []

    def begin(*arguments: str, folder: Path = folder, **environment: str) -> Demo:
        started.append(Demo(folder, *arguments, **environment))
        return started[-1]

    yield begin
    for demo in started:
        demo.kill()
