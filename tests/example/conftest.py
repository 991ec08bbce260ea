"""Runs of ``rk_demo`` that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.example.started import Demo

Start = Callable[..., Demo]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of one file keep their data. Its path is short enough for a socket."""
    return tmp_path_factory.mktemp("d")


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Start]:
    """Start the command with some arguments and environment."""
    started: list[Demo] = []

    def begin(*arguments: str, folder: Path = folder, **environment: str) -> Demo:
        started.append(Demo(folder, *arguments, **environment))
        return started[-1]

    yield begin
    for demo in started:
        demo.kill()
