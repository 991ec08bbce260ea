"""Ids of jobs and workers."""

import pytest

from redis_kit.queues.engine import ids as identity


@pytest.mark.parametrize(("new", "length"), [(identity.new_job, 14), (identity.new_worker, 22)])
def test_ids_are_random_of_one_length_and_no_shell_takes_them_for_options(new, length):
    ids = {new() for _ in range(2000)}
    assert len(ids) == 2000
    assert {len(id) for id in ids} == {length}
    assert not [id for id in ids if id.startswith("-")]
