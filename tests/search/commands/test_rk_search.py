"""The command: its output, its exit codes, a rebuild and a refresh."""

import json

import pytest

from tests.app.models import Page


def test_indexes_are_listed_rebuilt_and_refreshed(kit, page_index, shell):
    assert shell("rk_search", "list")[1].split()[-1] == "no"
    Page.objects.bulk_create([Page(title="a b"), Page(title="b c")])
    assert shell("rk_search", "rebuild", "app.pageindex")[:2] == (0, "app.PageIndex: 2 rows.\n")
    page_index.search("nowhere")
    code, out, _ = shell("rk_search", "list")
    assert code == 0
    line = out.splitlines()[1].split()
    assert (line[:4], line[6:]) == (["app.PageIndex", "default", "2", "5"], ["0", "1", "1", "0", "yes"])
    (about,) = json.loads(shell("rk_search", "list", "--json")[1])
    assert (about["documents"], about["memory"] > 300) == (2, True)
    assert about["empty_queries"][0][1] == "nowhere"
    Page.objects.update(title="d")
    assert shell("rk_search", "refresh", "app.PageIndex", "--json")[:2] == (0, '{"name": "app.PageIndex", "rows": 0}\n')


@pytest.mark.parametrize("action", ["rebuild", "refresh"])
def test_wrong_name_is_refused_with_the_right_one(page_index, shell, action):
    code, _, error = shell("rk_search", action, "app.PagesIndex")
    assert code == 1
    assert "Did you mean 'app.PageIndex'?" in error
