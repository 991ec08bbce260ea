"""What ``python -m benchmarks`` refuses before it measures anything."""

import pytest

from benchmarks import bench_celery, bench_workers
from benchmarks.__main__ import main


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["nothing"], "Unknown benchmark: nothing. Choose from: "),
        (["server:throttling"], "Unknown part of server: throttling. Choose from: locks, throttles, "),
        (["workers:drains,x"], "Unknown part of workers: x. Choose from: drains, "),
        (["locks:drains"], "locks takes no arguments."),
        (["server", "5"], "server takes words after a colon."),
        (["chaos:x"], "chaos takes numbers."),
        (["chaos", "1", "2", "3"], "chaos takes numbers."),
    ],
    ids=str,
)
def test_wrong_names_are_refused_in_one_line(capsys, names, words):
    assert main(names) == 2
    output = capsys.readouterr()
    assert (output.err.startswith(words), output.err.count("\n"), output.out) == (True, 1, "")


def test_parts_are_functions_of_their_benchmark():
    assert all(hasattr(module, part) for module in (bench_celery, bench_workers) for part in module.PARTS)
