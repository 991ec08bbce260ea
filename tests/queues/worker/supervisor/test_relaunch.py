"""The program by which a worker restarts: it runs a script or a module as the interpreter does."""

import json
import os
import subprocess
import sys

import pytest

from redis_kit.queues.worker.supervisor import autoreload, relaunch

PROGRAM = """
import json, sys
from django.utils.autoreload import get_child_arguments
print(json.dumps([__name__, sys.path[0], sys.argv[1:], [str(one) for one in get_child_arguments()]]))
sys.exit(3)
"""


@pytest.mark.parametrize("start", [["folder/program.py"], ["-m", "folder.program"]])
def test_program_runs_as_if_it_had_been_started_itself(tmp_path, start):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    command, runs = [sys.executable, "-W", "ignore", *start, "a", "-b"], []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop(autoreload.RESTARTED, None)
    for arguments in (command, [*command[:3], "-m", relaunch.__name__, *command[3:]]):
        process = subprocess.run(arguments, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=False)
        assert process.returncode == 3
        runs.append(json.loads(process.stdout))
    assert runs[0] == runs[1]
    assert runs[0][0] == "__main__"
