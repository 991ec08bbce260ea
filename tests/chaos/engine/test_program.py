"""The command line of the programs, and their report."""

from pathlib import Path

import pytest

from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome


def test_readme_names_every_program():
    text = Path(program.FOLDER, "README.md").read_text()
    assert [name for name in program.programs() if f"python -m tests.chaos {name}" not in text] == ["queues.kill_loop"]


def test_wrong_name_is_told_and_a_close_one_offered(capsys):
    assert program.main(["bloom.kil_loop"]) == 2
    assert "There is no program bloom.kil_loop. Did you mean bloom.kill_loop?" in capsys.readouterr().err


def test_report_counts_violations_by_kind_and_fails():
    outcome = Outcome("3 jobs", {"lost": ["job 1 was lost"], "doubled": []})
    assert str(outcome) == "3 jobs\n1 lost, 0 doubled\n  job 1 was lost"
    with pytest.raises(AssertionError, match="job 1 was lost"):
        outcome.check()
    Outcome("3 jobs", {"lost": [], "doubled": []}).check()
