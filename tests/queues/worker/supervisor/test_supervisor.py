"""The supervisor and its children: what each death costs, who is told to do what, and what is replaced when."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.core.management import call_command

from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import control_worker, list_workers, lost_workers, queue_stats
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.channel import pair
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.supervisor import probes
from redis_kit.queues.worker.supervisor.child import Child
from redis_kit.queues.worker.supervisor.supervisor import RespawnBackoff, Supervisor
from tests.fixtures.kit import Kit
from tests.fixtures.process import free_port, is_alive, wait_for
from tests.queues.conftest import COMMAND, ROOT, environment
from tests.queues.support.journal import LASTING, QUICK
from tests.queues.support.processes import children, stopped
from tests.queues.support.tasks import die_of, grow, hold_c, never_end, never_leave_c, note, sleep_on, wait_for_file

pytestmark = [pytest.mark.alone(40), pytest.mark.once]

EMPTY = QueueCounts(0, 0, 0, 0)


@pytest.fixture
def queue(kit):
    return Queue("default")


@pytest.fixture
def long_job(journal, tmp_path):
    """Start a job that ends when its file is there; return the file once it runs."""

    def start(name="long"):
        go = tmp_path / name
        wait_for_file.enqueue(name, str(go))
        wait_for(lambda: journal.lines(name=name, step="begin"))
        return go

    return start


def second_begin(journal, name="long"):
    return wait_for(lambda: journal.lines(name=name, step="begin")[1:])[0]


def test_children_are_workers_of_their_own_under_one_supervisor(queue, journal, start_worker, long_job):
    worker = start_worker("--processes", 2, "--threads", 1)
    wait_for(lambda: len(children(worker)) == 2)
    files = [long_job("one"), long_job("two")]
    assert sorted(line.pid for line in journal.lines(step="begin")) == children(worker)
    found = list_workers()
    assert len({one.supervisor for one in found}) == 1
    told = {(one.supervisor_pid, one.threads, one.queues) for one in found}
    assert told == {(worker.pid, 1, ("default", "elsewhere"))}
    assert {one.state for one in found} == {"working"}
    assert all(one.memory is None or 5 < one.memory < 1000 for one in found)
    held = [job for one in found for job in one.held]
    assert [job.task.rpartition(".")[2] for job in held] == ["wait_for_file"] * 2
    assert all(job.age is None or 0 <= job.age < 60 for job in held)
    for file in files:
        file.touch()
    wait_for(lambda: queue.counts() == EMPTY)
    stopped(worker, within=10)
    assert list_workers() == []
    assert [line.step for line in journal.lines(name="worker")] == ["started", "started", "stopping", "stopping"]


def test_job_of_a_killed_child_runs_again_at_once_in_a_new_child(queue, journal, start_worker, long_job):
    worker = start_worker("--processes", 2, "--threads", 2)
    wait_for(lambda: len(children(worker)) == 2)
    file = long_job()
    (victim,) = {line.pid for line in journal.lines(name="long")}
    os.kill(victim, signal.SIGKILL)
    killed = time.time()
    again = second_begin(journal)
    print(f"back after {again.at - killed:.3f} s, with a lease of 10 s")
    assert again.at - killed < 6
    assert again.pid != victim
    wait_for(lambda: len(children(worker)) == 3 and victim not in children(worker))  # one is for this job alone
    (job,) = queue.peek(5, state="running")
    assert f"ended by SIGKILL; it ran {job.id!a}.\n" in worker.log.read_text()
    assert queue_stats(["default"])["default"].workers == 2
    assert (job.attempts, job.crashes) == (2, 1)
    file.touch()
    wait_for(lambda: queue.counts() == EMPTY)
    stopped(worker, within=10)
    assert journal.names("begin").count("long") == 2


def test_child_without_a_supervisor_gives_back_its_jobs_and_ends(queue, journal, start_worker, long_job):
    victim = start_worker("--threads", 1)
    file = long_job()
    (orphan,) = children(victim)
    other = start_worker("--threads", 1)
    victim.kill()
    killed = time.time()
    again = second_begin(journal)
    print(f"back after {again.at - killed:.3f} s, with a lease of 10 s")
    assert again.at - killed < 6
    assert [again.pid] == children(other)
    wait_for(lambda: not is_alive(orphan))
    (job,) = queue.peek(5, state="running")
    assert (job.attempts, job.crashes) == (1, 0)
    file.touch()
    wait_for(lambda: queue.counts() == EMPTY)


def test_where_all_processes_are_killed_at_once_the_lease_gives_back(
    queue, kit, journal, start_worker, long_job, capsys
):
    kit.options(QUEUES=QUICK)
    victim = start_worker("--threads", 1)
    long_job()
    other = start_worker("--threads", 1)
    wait_for(lambda: children(other))
    victim.send_signal(signal.SIGSTOP)
    os.kill(children(victim)[0], signal.SIGKILL)
    victim.kill()
    killed = time.time()
    again = second_begin(journal)
    print(f"back after {again.at - killed:.3f} s, with a lease of {QUICK['WORKER_TIMEOUT']} s")
    assert again.at - killed < 10  # of another worker; the default lease is longer
    assert again.pid in children(other)
    (lost,) = lost_workers()
    assert (lost.supervisor_pid, lost.jobs, lost.host) == (victim.pid, 1, socket.gethostname())
    call_command("rk_queues")
    assert "as it ended without signing off: others took 1 job from it." in capsys.readouterr().out
    stopped(other, signal.SIGQUIT, within=10)
    assert lost_workers()[0][:4] == lost[:4]  # one that stops in order is none


# Thirty seconds are long for a test.
IMPATIENT = """
import sys
from django.core.management import execute_from_command_line
from redis_kit.queues.worker import process
from redis_kit.queues.worker.supervisor import child

process.SIGN_OF_LIFE, child.UNRESPONSIVE = 0.1, 1.5
execute_from_command_line(sys.argv[2:])
"""


def test_child_that_is_frozen_is_said_not_to_respond(queue, kit, start_worker, capsys):
    kit.options(QUEUES=LASTING)
    worker = start_worker("--threads", 1, program=["-c", IMPATIENT])

    def state():
        return [one.state for one in list_workers()]

    wait_for(lambda: state() == ["working"])
    (frozen,) = children(worker)
    os.kill(frozen, signal.SIGSTOP)
    wait_for(lambda: state() == ["unresponsive"])
    (found,) = list_workers()
    assert (found.unresponsive >= 1, found.silent < 5) == (True, True)
    call_command("rk_queues")
    assert f"process {frozen}) of default, elsewhere has not responded for" in capsys.readouterr().out
    os.kill(frozen, signal.SIGCONT)
    wait_for(lambda: state() == ["working"])
    assert f"Child {frozen}, worker {found.id}, has not responded for ".encode() in worker.log.read_bytes()
    wait_for(lambda: f"Child {frozen}, worker {found.id}, responds again.".encode() in worker.log.read_bytes())
    stopped(worker, within=10)


def test_poison_of_every_kind_is_dead_after_the_limit(queue, kit, journal, start_worker):
    kit.options(QUEUES={"MAX_CRASHES": 2})
    for cause in ("exit", "fault"):
        die_of.using(priority=1).enqueue(cause, cause)
    for number in range(10):
        note.enqueue(f"good{number}")
    worker = start_worker("--threads", 1, "--burst")
    assert worker.wait(30) == 0
    assert [(job.reason, job.crashes) for job in queue.peek(state="dead")] == [
        ("poison: 2 processes died in which it ran alone", 2)
    ] * 2
    said = worker.log.read_bytes()
    assert said.count(b"ended by exit code 3") == said.count(b"ended by SIGSEGV") == 2
    assert sorted(journal.names()) == sorted(f"good{number}" for number in range(10))
    assert list_workers() == []


def test_children_that_die_at_birth_are_forked_more_and_more_slowly():
    restraint, waits = RespawnBackoff(), []
    restraint.note(0.5)
    assert restraint.over()
    for _ in range(12):
        before = time.monotonic()
        restraint.note(0.5)
        waits.append(restraint.until - before)
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 5, 5], abs=0.05)
    assert not restraint.over()
    restraint = RespawnBackoff()
    for _ in range(5):
        restraint.note(1.5)
    assert restraint.over()


@pytest.mark.parametrize(("task", "state"), [(never_end, "dead"), (never_leave_c, "scheduled")])
def test_task_that_can_not_be_interrupted_costs_its_process(queue, journal, start_worker, long_job, task, state):
    worker = start_worker("--threads", 2)
    file = long_job()
    (long,) = queue.peek(5, state="running")
    handle = task.enqueue("hangs")
    (began,) = wait_for(lambda: journal.lines(name="hangs"))
    wait_for(lambda: getattr(queue.counts(), state) == 1)
    late = time.time() - began.at - 0.3
    print(f"ended {late:.2f} s after its timeout")
    assert late >= 1  # 1.1 s on a quiet machine
    (job,) = queue.peek(5, state=state)
    assert (job.attempts, job.crashes) == (1, 0)
    assert state == "scheduled" or job.reason == f"TaskTimeout: {task.module_path} ran for more than 0.3 s"
    known = f"Job {handle.id!a} of queue 'default' ({task.module_path}): its process was killed, attempt 1 of "
    known += "1, it is dead: 'TaskTimeout" if state == "dead" else ""
    said = wait_for(lambda: known in (log := worker.log.read_text()) and log)
    assert "the next one in " in said or state == "dead"
    assert f" was killed by its supervisor: job {handle.id!a} ran beyond its timeout.\n" in said
    taken = f", which died; it ran {long.id!a}.\n"
    said = wait_for(lambda: taken in (log := worker.log.read_text()) and log)
    assert said.count("taken from worker") == 1
    assert "ended by" not in said
    handle.refresh()
    assert [error.exception_class_path for error in handle.errors] == ["redis_kit.queues.errors.TaskTimeout"]
    assert handle.is_finished == (state == "dead")
    # The other job of that child runs alone from now on, and lost no attempt.
    again = second_begin(journal)
    (other,) = queue.peek(5, state="running")
    assert (other.attempts, other.crashes) == (1, 1)
    assert again.pid not in {began.pid, worker.pid}
    file.touch()
    wait_for(lambda: queue.counts().running == 0)


@pytest.mark.parametrize(
    ("task", "end"), [(sleep_on, "killed"), (sleep_on, "killed with"), (sleep_on, "stopped"), (hold_c, "stopped")]
)
def test_cancelled_task_that_does_not_stop_ends_with_its_process(kit, queue, journal, start_worker, task, end):
    kit.options(QUEUES=LASTING)
    worker = start_worker("--threads", 2, "--grace", 1)
    handle = task.enqueue("held")
    (began,) = wait_for(lambda: journal.lines(name="held"))
    assert handle.cancel()
    assert control_worker(list_workers()[0].id, "resume")
    wait_for(lambda: not kit.client.hlen(queue.key("orders")))  # so there was a heartbeat
    if end == "killed":
        os.kill(began.pid, signal.SIGKILL)
    elif end == "stopped":
        stopped(worker, within=30)
    else:
        never_end.enqueue("other")
    wait_for(lambda: handle.refresh() or handle.is_finished)
    assert [error.exception_class_path for error in handle.errors] == ["redis_kit.queues.errors.Cancelled"]
    wait_for(lambda: queue.get(handle.id) is None)
    wait_for(lambda: b" was cancelled; it ended with its process.\n" in worker.log.read_bytes())
    assert journal.names("begin").count("held") == 1


def test_hard_timeout_does_not_wait_for_a_server_that_is_frozen(make_server, settings, journal, start_worker):
    server = make_server(tcp=True)
    kit = Kit(server, settings)
    kit.options(QUEUES=QUICK)
    start_worker("--threads", 1)
    never_end.enqueue("hangs")
    (began,) = wait_for(lambda: journal.lines(name="hangs"))
    server.freeze()
    try:
        wait_for(lambda: not is_alive(began.pid))
    finally:
        server.thaw()
    wait_for(lambda: [job.reason[:12] for job in Queue("default").peek(state="dead")] == ["TaskTimeout:"])
    kit.close()


def test_child_is_replaced_after_so_many_jobs_and_none_is_lost(queue, journal, start_worker):
    names = [f"job{number}" for number in range(40)]
    for name in names:
        note.enqueue(name)
    worker = start_worker("--threads", 2, "--max-tasks", 10)
    wait_for(lambda: queue.counts() == EMPTY)
    stopped(worker, within=10)
    assert sorted(journal.names()) == sorted(names)
    pids = [line.pid for line in journal.lines(step="end")]
    assert len(set(pids)) >= 3
    assert max(pids.count(pid) for pid in pids) <= 12
    assert re.search(r"is quiet and will be replaced: it has run 1[0-2] jobs\.\n", worker.log.read_text())
    assert b"ended by" not in worker.log.read_bytes()


def test_child_that_grows_is_replaced_between_jobs(queue, journal, start_worker):
    for number in range(8):
        grow.enqueue(f"job{number}", 100)
    worker = start_worker("--threads", 1, "--max-rss", 200)
    wait_for(lambda: queue.counts() == EMPTY)
    stopped(worker, within=10)
    pids = [line.pid for line in journal.lines(step="end")]
    assert len(pids) == 8
    assert len(set(pids)) >= 4  # two jobs are more than any may have
    assert re.search(r"is quiet and will be replaced: it has [2-9]\d\d MiB\.\n", worker.log.read_text())
    assert b"ended by" not in worker.log.read_bytes()


def test_quiet_worker_ends_what_runs_claims_no_more_and_stays(queue, journal, start_worker, long_job):
    worker = start_worker("--threads", 2)
    file = long_job()
    worker.send_signal(signal.SIGTSTP)
    wait_for(lambda: b"claims no more" in worker.log.read_bytes())
    time.sleep(0.5)  # the promise: no claim after half a second
    note.enqueue("later")
    file.touch()
    wait_for(lambda: queue.counts() == QueueCounts(0, 1, 0, 0))
    time.sleep(0.3)
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert worker.poll() is None
    stopped(worker, within=10)
    assert journal.names() == ["long"]
    assert b"Stopping: no job is running.\n" in worker.log.read_bytes()
    assert worker.log.read_bytes().endswith(b"Stopped.\n")


def test_stacks_of_all_processes_are_told(queue, start_worker, long_job):
    worker = start_worker("--threads", 1, "--processes", 2)
    long_job()
    wait_for(lambda: len(children(worker)) == 2)
    worker.send_signal(signal.SIGTTIN)
    wait_for(lambda: b"in wait_for_file" in worker.log.read_bytes() and b"supervisor.py" in worker.log.read_bytes())
    told = wait_for(lambda: (found := worker.log.read_bytes()).count(b"Stacks of ") == 3 and found).decode()
    assert f"Stacks of supervisor {worker.pid}:\n" in told
    for one in list_workers():
        assert f"Stacks of child {one.pid}, worker {one.id}:\n" in told
    assert worker.poll() is None


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=["hangup", "quit"])
def test_other_signals_that_end_a_process_stop_the_worker(queue, start_worker, long_job, number):
    worker = start_worker("--threads", 1, "--grace", 0.2)
    long_job()
    stopped(worker, number, within=10)
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert queue.claim()[0].attempt == 1


def test_signals_for_the_whole_group_reach_only_the_supervisor(queue, journal, start_worker, long_job):
    worker = start_worker("--threads", 1)
    file = long_job()
    for pid in [*children(worker), worker.pid]:
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.2)
    assert worker.poll() is None
    file.touch()
    assert worker.wait(20) == 0
    assert journal.names() == ["long"]


def test_child_that_does_not_end_in_time_is_killed_and_its_job_returned(queue, journal, start_worker):
    worker = start_worker("--threads", 1, "--grace", 0)
    handle = hold_c.enqueue("hangs")
    wait_for(lambda: journal.lines(name="hangs"))
    stopped(worker, within=10)
    (job,) = queue.claim()
    assert (job.id, job.attempt, job.crashes) == (handle.id, 1, 0)


def test_signals_during_the_start_leave_no_worker_behind(queue, kit, journal):
    kit.options(QUEUES=QUICK)
    its = environment(kit.settings, journal)
    for number in range(3):  # the loop of starts in tests/chaos/queues sends signals at each line
        process = subprocess.Popen(COMMAND, cwd=ROOT, env=its, stderr=subprocess.PIPE)
        time.sleep(0.1 + 0.25 * number)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)  # the grace is longer
        assert process.returncode in (0, -signal.SIGTERM, -signal.SIGINT, 1)
    wait_for(lambda: queue.heartbeat(worker="looks") >= 0 and [worker.id for worker in list_workers()] == ["looks"])


def test_child_that_dies_in_an_outage_is_reaped_when_the_server_answers(
    make_server, settings, journal, start_worker, long_job, tmp_path
):
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data")
    kit = Kit(server, settings)
    queue = Queue("default")
    worker = start_worker("--threads", 1)
    long_job()
    kit.client.bgrewriteaof()
    wait_for(lambda: kit.client.info("persistence")["aof_rewrite_in_progress"] == 0)
    assert kit.client.waitaof(1, 0, 5000)[0] == 1
    (victim,) = children(worker)
    server.stop()
    wait_for(lambda: b"Lost connection to Redis" in worker.log.read_bytes())
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: b"ended by SIGKILL" in worker.log.read_bytes())
    wait_for(lambda: len(journal.lines(name="worker", step="started")) == 2)
    server.start()
    began = time.time()
    again = second_begin(journal)
    print(f"back {again.at - began:.2f} s after the server was")
    assert again.at - began < 6  # less than a lease
    assert queue.peek(1, state="running")[0].crashes == 1
    said = worker.log.read_bytes()
    assert said.count(b"Lost connection to Redis") == said.count(b"Reconnected to Redis") == 1
    kit.close()


def test_claim_that_comes_in_after_the_death_of_its_child_is_undone(queue, start_worker):
    worker = start_worker()
    (victim,) = wait_for(list_workers)
    worker.send_signal(signal.SIGTSTP)  # so that nobody takes the place, nor the job
    wait_for(lambda: b"claims no more" in worker.log.read_bytes())
    os.kill(victim.pid, signal.SIGKILL)
    wait_for(lambda: list_workers() == [])
    queue.put("late")
    assert queue.claim(worker=victim.id)
    began = time.monotonic()
    wait_for(lambda: queue.counts().ready == 1)
    assert time.monotonic() - began < 8  # the lease is 10 s
    assert list_workers() == []


def test_commands_from_another_process_are_carried_out(queue, kit, journal, start_worker):
    kit.options(QUEUES=LASTING)
    worker = start_worker("--processes", 2)
    wait_for(lambda: [one.state for one in list_workers()] == ["working"] * 2)
    one = list_workers()[0].id
    assert control_worker(one, "quiet")
    wait_for(lambda: b"claims no more" in worker.log.read_bytes())
    wait_for(lambda: {found.state for found in list_workers()} == {"quiet"})
    note.enqueue("first")
    assert control_worker(one, "resume")
    wait_for(lambda: "first" in journal.names())
    wait_for(lambda: {found.state for found in list_workers()} == {"working"})
    worker.send_signal(signal.SIGTSTP)
    wait_for(lambda: worker.log.read_bytes().count(b"claims no more") == 2)
    note.enqueue("second")
    worker.send_signal(signal.SIGCONT)
    wait_for(lambda: "second" in journal.names())
    wait_for(lambda: worker.log.read_bytes().count(b"has resumed") == 2)  # a process may run it before it is quiet
    assert control_worker(list_workers()[0].supervisor, "stop")
    assert worker.wait(20) == 0


def test_burst_ends_with_however_many_threads(queue, journal, start_worker):
    for processes, threads in ((1, 64), (4, 8)):
        worker = start_worker("--burst", "--processes", processes, "--threads", threads)
        assert worker.wait(20) == 0
    for number in range(40):
        note.enqueue(f"job{number}")
    assert start_worker("--burst", "--processes", 2).wait(20) == 0
    assert len(journal.names()) == 40


def test_idle_worker_sends_at_most_one_command_a_second(queue, kit, start_worker, commands):
    worker = start_worker("--queue-name", "default")
    wait_for(lambda: kit.client.exists(f"{kit.prefix}:{{queues}}:names"))
    time.sleep(1)  # for what it sends when it starts
    began = time.monotonic()
    with commands(kit) as sent:
        time.sleep(2.5)
    assert 1 <= len(sent) <= time.monotonic() - began + 2, sent  # one at either end of the time
    assert worker.poll() is None


def test_health_is_told_by_http(make_server, settings, journal, start_worker, long_job, tmp_path):
    server, port = make_server(tcp=True), free_port()
    kit = Kit(server, settings)
    kit.options(QUEUES=QUICK)
    worker = start_worker("--queue-name", "default,mail", "--threads", 1, "--health-port", port, "--max-wait", 1)
    wait_for(lambda: asked(port)[0] == 200)
    said = asked(port)[1]
    assert (said["status"], said["children"], said["reasons"]) == ("ok", 1, [])
    file = long_job()
    note.enqueue("waits")
    late = ["a job of default waits for more than 1 s"]
    wait_for(lambda: asked(port)[1]["reasons"] == late)
    assert asked(port)[0] == 503
    key = Queue("mail").key("ready")
    kit.client.set(key, "x")
    damaged = wait_for(lambda: asked(port)[1]["damaged"])
    assert damaged["mail"].startswith(f"The key {key!a} is a string in place of a zset")
    wait_for(lambda: asked(port)[1]["reasons"] == [*late, "mail has a damaged key"])
    assert asked(port)[0] == 503
    assert asked(port, "/livez") == (200, {"status": "ok", "reasons": []})  # a new process would mend neither
    log = Path(worker.log).read_text()
    assert f"Queue 'mail' gets no heartbeat or can't be read: The key {key!a}" in log
    assert "Traceback" not in log
    Queue("default").pause()
    wait_for(lambda: asked(port)[0] == 200)  # to start the process again would mend no key
    assert asked(port)[1]["status"] == "degraded"
    assert asked(port)[1]["reasons"] == ["mail has a damaged key"]
    kit.client.delete(key)
    wait_for(lambda: asked(port)[1]["status"] == "ok")
    Queue("default").resume()
    file.touch()
    wait_for(lambda: journal.names() == ["long", "waits"])
    wait_for(lambda: asked(port)[0] == 200)
    assert asked(port, "/")[0] == 404
    assert asked(port, data=b"x")[0] == 405
    second = long_job("second")
    note.enqueue("late")
    wait_for(lambda: asked(port)[1]["reasons"] == late)
    server.stop()
    wait_for(lambda: "".join(asked(port)[1]["reasons"]).startswith("the server does not answer: Redis can't be"))
    answer = asked(port)[1]
    assert (answer["waits"], answer["silent"] > QUICK["WORKER_TIMEOUT"]) == ({}, True)
    second.touch()
    other = start_worker("--health-port", port)
    assert other.wait(20) == 1
    assert b"Can't listen on port" in Path(other.log).read_bytes()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    kit.close()


def asked(port, path="/healthz", data=None):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize(("seconds", "waits"), [(4.0, False), (6.0, True)])
def test_call_that_waits_in_an_outbox_is_a_reason_of_health(kit, monkeypatch, seconds, waits):
    supervisor = Supervisor(Options(("default",), max_wait=5))
    ours, theirs = pair()
    supervisor.children = [Child(0, "w", ours, StatusBoard(1), [])]
    theirs.say("waits", "a call waits in the outbox", seconds)
    supervisor._read_channels()
    reason = "a call waits in the outbox for more than 5 s"
    assert (reason in supervisor._probes.health()["reasons"]) == waits
    now = time.monotonic()
    monkeypatch.setattr(probes, "monotonic", lambda: now + 61)
    assert reason not in supervisor._probes.health()["reasons"]
    supervisor.children[0].close()
    theirs.close()
