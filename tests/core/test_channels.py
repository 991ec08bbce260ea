"""The listener: subscriptions of threads and tasks on one connection, and what they get after each kind of loss."""

import asyncio
import os
import signal
import threading
import time

import pytest

from redis_kit.core import channels as module
from redis_kit.core import connections
from redis_kit.core.channels import MOST, Listen, subscribed
from redis_kit.core.errors import PermissionDenied
from redis_kit.core.steps import Call
from tests.fixtures.kit import Kit
from tests.fixtures.process import forked, wait_for


def publish(channel, text):
    return Call("SPUBLISH", channel, text).run(connections.client())


def taken(subscription, seconds=5.0):
    return Listen(subscription, seconds).run(None)


def subscribers(kit):
    return [each for each in kit.client.client_list() if each.get("ssub", "0") != "0"]


def test_publications_come_in_their_order(any_kit):
    channel = f"{any_kit.prefix}:{{a}}"
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None  # the server has confirmed it: look
        for number in range(5):
            publish(channel, f"m{number}")
        found = []
        while len(found) < 5:
            found += taken(subscription)
        assert found == [b"m0", b"m1", b"m2", b"m3", b"m4"]
        assert taken(subscription, 0.05) == []


def test_channels_of_many_callers_share_a_connection(kit):
    channels = [f"{kit.prefix}:{{{number}}}" for number in range(20)]

    said = []

    async def wait(channel):
        with subscribed("default", channel) as subscription:
            while True:
                await subscription.await_(5)
                if b"hi" in (subscription.take() or said):
                    return channel

    async def run():
        tasks = [asyncio.create_task(wait(channel)) for channel in channels for _ in range(3)]
        while sum(publish(channel, "hello") for channel in channels) < 20:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        count = len(subscribers(kit))
        said.append(b"hi")
        for channel in channels:
            publish(channel, "hi")
        return count, await asyncio.gather(*tasks)

    count, answers = asyncio.run(run())
    assert (count, len(answers)) == (1, 60)
    wait_for(lambda: not any(publish(channel, "hi") for channel in channels))  # nobody is subscribed any more


def test_subscriber_looks_after_its_connection_was_cut(kit):
    channel = f"{kit.prefix}:{{a}}"
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None
        kit.client.client_kill_filter(_id=subscribers(kit)[0]["id"])
        assert taken(subscription) is None
        wait_for(lambda: publish(channel, "again"))
        assert b"again" in taken(subscription)


def test_subscriber_who_comes_or_goes_disturbs_no_other(kit):
    channel = f"{kit.prefix}:{{a}}"
    with subscribed("default", channel) as first:
        assert taken(first) is None
        for _ in range(3):
            with subscribed("default", channel) as second:
                assert taken(second) is None
                publish(channel, "hi")
                assert taken(second) == taken(first) == [b"hi"]
        assert taken(first, 0.1) == []
    for _ in range(3):  # as a caller that waits again and again
        with subscribed("default", channel) as only:
            assert taken(only) is None
            publish(channel, "hi")
            assert taken(only) == [b"hi"]


def test_server_that_is_frozen_is_noticed(own_kit, monkeypatch):
    monkeypatch.setattr(module, "PING", 0.1)
    channel = f"{own_kit.prefix}:{{a}}"
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None
        own_kit.server.freeze()
        time.sleep(0.5)
        own_kit.server.thaw()
        assert taken(subscription) is None  # over another connection


def test_slow_subscriber_is_told_to_look(kit):
    channel = f"{kit.prefix}:{{a}}"
    with subscribed("default", channel) as slow, subscribed("default", channel) as quick:
        assert taken(slow) is None
        assert taken(quick) is None
        for number in range(MOST + 10):
            publish(channel, str(number))
            assert taken(quick) == [str(number).encode()]
        assert slow.take() is None
        publish(channel, "next")
        assert taken(slow) == [b"next"]


def test_refusal_is_raised(kit):
    kit.client.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", "~*", "+@all", "resetchannels")
    kit.connect({**kit.server.connection, "USERNAME": kit.prefix, "PASSWORD": "secret"})
    try:
        with subscribed("default", f"{kit.prefix}:{{a}}") as first:
            with pytest.raises(PermissionDenied):
                taken(first)
            with subscribed("default", f"{kit.prefix}:{{a}}") as second, pytest.raises(PermissionDenied):
                taken(second)
    finally:
        kit.connect(kit.server.connection)
        kit.client.execute_command("ACL", "DELUSER", kit.prefix)


def test_thread_ends_when_nobody_waits_and_starts_again(kit, monkeypatch):
    monkeypatch.setattr(module, "LINGER", 0.05)
    channel = f"{kit.prefix}:{{a}}"
    for _ in range(2):
        with subscribed("default", channel) as subscription:
            assert taken(subscription) is None
        wait_for(lambda: not any(thread.name == "redis_kit listener" for thread in threading.enumerate()))
    assert subscribers(kit) == []


def test_subscription_goes_on_after_a_change_of_the_settings(kit):
    channel = f"{kit.prefix}:{{a}}"
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None
        kit.options(MAX_CONNECTIONS=20)
        assert taken(subscription) is None
        wait_for(lambda: publish(channel, "hi"))
        assert taken(subscription) == [b"hi"]


def test_forked_child_listens_for_itself(kit):
    channel = f"{kit.prefix}:{{a}}"
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None

        def listen():
            with subscribed("default", channel) as own:
                assert taken(own) is None
                publish(channel, "from the child")
                assert taken(own) == [b"from the child"]

        pid = forked(listen)
        assert os.waitpid(pid, 0)[1] == 0
        assert taken(subscription) == [b"from the child"]


def test_child_does_not_keep_the_connection_of_a_listener_that_was_killed(kit):
    channel = f"{kit.prefix}:{{a}}"
    reading, writing = os.pipe()

    def listen():
        with subscribed("default", channel) as subscription:
            taken(subscription)
            os.write(writing, f"{forked(lambda: time.sleep(20))}\n".encode())
            time.sleep(20)

    parent = forked(listen)
    os.close(writing)
    with os.fdopen(reading) as answer:
        child = int(answer.readline())
    assert len(subscribers(kit)) == 1
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        wait_for(lambda: not subscribers(kit))
    finally:
        os.kill(child, signal.SIGKILL)


def test_slot_that_moves_takes_its_channels_along(cluster, settings):
    kit = Kit(cluster, settings)
    channel = f"{kit.prefix}:{{a}}"
    try:
        with subscribed("default", channel) as subscription:
            assert taken(subscription) is None
            cluster.migrate(channel, next(node for node in cluster.nodes if node is not cluster.owner(channel)))
            assert taken(subscription) is None
            wait_for(lambda: publish(channel, "hi"))
            assert b"hi" in taken(subscription)
    finally:
        kit.close()


def test_subscriber_at_a_node_that_does_not_have_the_slot_is_told(cluster, settings):
    kit = Kit(cluster, settings)
    kit.connect({"URL": cluster.url})
    channel = next(name for name in "abcdef" if cluster.owner(name) is not cluster.nodes[0])
    try:
        with subscribed("default", channel) as subscription:
            wait_for(lambda: subscription.error)
            assert "is a node of a Cluster" in str(subscription.error)
    finally:
        kit.close()


def test_thread_that_cannot_start_is_tried_again(kit, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    channel = f"{kit.prefix}:{{a}}"
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError), subscribed("default", channel):
            pass
    with subscribed("default", channel) as subscription:
        assert taken(subscription) is None
