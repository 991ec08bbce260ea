"""A resumable task touches every row, and repeats few, while its worker is killed and replaced."""

import pytest

from tests.chaos.queues import resumption
from tests.fixtures.fork_server import run_python

pytestmark = [pytest.mark.alone(10), pytest.mark.once, pytest.mark.timeout(120)]


def test_every_row_is_done_and_at_most_every_are_repeated_after_a_kill():
    command = ["-m", "tests.chaos", "queues.resumption", "900", "--kills", "3", "--every", "50", "--seed", "7"]
    done = run_python(command, timeout=110)
    print(done.stdout, done.stderr[-4000:])
    assert done.returncode == 0
    assert "0 lost, 0 doubled, 0 uneven, 0 job" in done.stdout


@pytest.mark.parametrize(
    ("runs", "kills", "said"),
    [
        ([[1, 2, 3], [3, 4]], ["child"], ""),
        ([[1, 2, 3], [5]], ["child"], "1 rows were not done: [4]"),
        ([[1, 2, 3, 4], [1, 2, 3, 4, 5]], ["machine"], "4 rows were done again, over 3"),
        ([[1, 2, 3], [3, 4, 5]], ["deploy"], "1 rows were done again, over 0"),
        ([[1, 2, 3, 4, 5]], ["child"], "1 kills and 1 runs"),
    ],
)
def test_checker_finds_what_is_wrong(tmp_path, runs, kills, said):
    lines = [
        f"{row} {pid} {pid * 100 + place} end 0\n" for pid, rows in enumerate(runs, 1) for place, row in enumerate(rows)
    ]
    (tmp_path / "history").write_text("".join(lines))
    rows = sorted({row for run in runs for row in run} | ({4} if "not done" in said else set()))
    by_kind = resumption.violations(resumption.Runs(tmp_path / "history"), kills, rows, every=3)
    found = [text for texts in by_kind.values() for text in texts]
    assert said in "".join(found)
    assert bool(found) == bool(said)
