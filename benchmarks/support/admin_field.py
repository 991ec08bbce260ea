"""The field of the example's admin that chooses an author: by the kit, and by Django alone."""

import os
import random
import sys
import tempfile
import time
from statistics import median
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
REQUESTS = 40


def run(rows: int, url: str) -> None:
    """Print the median time of a request by both."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["READING_DATABASE"] = f"{folder}/reading.sqlite3"
        import django
        from django.conf import settings

        settings.REDIS_KIT = {**settings.REDIS_KIT, "CONNECTIONS": {"default": {"URL": url}}, "READ_TIMEOUT": 5}
        django.setup()
        _fill(rows)
        names = _names(REQUESTS)
        with_kit = _time(names)
        from example_project.reading.admin import AuthorAdmin

        AuthorAdmin._find = lambda self, request, queryset, text: None  # type: ignore[method-assign]
        alone = _time(names)
        print(
            f"\nthe admin's field among {rows:,} authors on SQLite, p50 of a request: kit {1000 * with_kit:.1f} ms, ",
            end="",
        )
        print(f"Django alone {1000 * alone:.1f} ms, {alone / with_kit:.1f} times as long")


def _fill(rows: int) -> None:
    from django.core.management import call_command

    from benchmarks.support import names
    from example_project.reading.models import Author, User, authors

    call_command("migrate", verbosity=0)
    User.objects.create_superuser("admin", password="admin")
    Author.objects.bulk_create((Author(name=name) for _id, name, _weight in names.entries(rows)), batch_size=5000)
    began = time.perf_counter()
    authors.rebuild()
    print(f"rebuilt from {rows:,} rows in {time.perf_counter() - began:.0f} s")


def _names(count: int) -> list[str]:
    """Return the beginnings of both words of some authors."""
    from benchmarks.support import names

    rng = random.Random(4)
    return [" ".join(part[:4] for part in names.name(rng).split()) for _ in range(count)]


def _time(queries: list[str]) -> float:
    from django.test import Client
    from django.urls import reverse

    from example_project.reading.models import User

    client, times = Client(), list[float]()
    client.force_login(User.objects.get(username="admin"))
    field: dict[str, Any] = {"app_label": "reading", "model_name": "article", "field_name": "author"}
    for query in queries:
        began = time.perf_counter()
        answer = client.get(reverse("admin:autocomplete"), {**field, "term": query})
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer
    return median(times)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2])
