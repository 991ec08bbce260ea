"""A stock of parts on the dashboard, and people who may do more or less with it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from redis_kit.core import component
from tests.app.models import User
from tests.dashboard import parts
from tests.fixtures.kit import Kit

ADMIN = "/admin/redis_kit/dashboard/"


@pytest.fixture
def own_panels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No panel but those of the tests' own component, with nothing in the mirror."""
    monkeypatch.setattr(component, "BUILTIN", ("redis_kit.dashboard.component.Dashboard",))
    for given in (parts.MIRROR, parts.ASKED, parts.FAILURE):
        given.clear()
    yield
    for given in (parts.MIRROR, parts.ASKED, parts.FAILURE):
        given.clear()
    parts.TITLE[:] = ["Mirror"]


@pytest.fixture
def stock(kit: Kit, own_panels: None) -> Kit:
    """The kit with three bolts and four nuts."""
    kit.options(EXTRA_COMPONENTS=["tests.dashboard.parts.Parts"])
    kit.client.hset(parts.key("stock"), mapping={"bolt": 3, "nut": 4})
    return kit


@pytest.fixture
def signed_in(db: None) -> Callable[..., Client]:
    """Return a client of somebody of the staff with these permissions of the kit; "superuser" has all."""

    def sign_in(*codenames: str, staff: bool = True, **options: Any) -> Client:
        everything = "superuser" in codenames
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=staff, is_superuser=everything)
        found = Permission.objects.filter(content_type__app_label="redis_kit", codename__in=codenames)
        user.user_permissions.set(found)
        assert everything or len(found) == len(codenames)
        client = Client(**options)
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def boss(signed_in: Callable[..., Client]) -> Client:
    """A client that may do everything."""
    return signed_in("superuser")
