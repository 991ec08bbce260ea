"""The types of decorated functions, which mypy checks with the package; nothing here runs."""

from collections.abc import Callable
from typing import Any, assert_type

from django.http import HttpRequest, HttpResponse

from redis_kit.locks import locked


@locked("a", on_busy="skip")
def skipped(number: int) -> str:
    return str(number)


@locked("a", on_busy="skip", timeout=5)
async def skipped_later(number: int) -> str:
    return str(number)


@locked("a")
def raised(number: int) -> str:
    return str(number)


@locked("a", on_busy="wait")
async def waited(number: int) -> str:
    return str(number)


@locked("a", on_busy=lambda request: HttpResponse(status=409))
def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


class Report:
    @locked("report:{number}", on_busy="skip")
    def build(self, number: int) -> str:
        return str(number)


async def check() -> None:
    assert_type(skipped(1), str | None)
    assert_type(await skipped_later(1), str | None)
    assert_type(raised(1), str)
    assert_type(await waited(1), str)
    assert_type(view(HttpRequest()), HttpResponse)
    assert_type(Report().build(1), str | None)
    skipped("1")  # type: ignore[arg-type]
    options: dict[str, Any] = {"using": "default"}
    decorated: Callable[[int], str | None] = locked("a", on_busy="skip", **options)(skipped)
    assert_type(decorated(1), str | None)
