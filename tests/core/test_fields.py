"""Text that each database compares as it is."""

import pytest

from redis_kit.queues.models import Schedule
from redis_kit.signins.database.models import SignInDay


@pytest.mark.django_db
def test_text_with_another_case_or_accent_is_another_one():
    names = ["a", "A", "\u00e4", "a\u0308", "\U0001f600", "\U0001f601"]
    for name in names:
        Schedule.objects.create(name=name)
        SignInDay.objects.create(label="shop.member", object_id=name, day="2026-01-05")
    for name in names:
        assert Schedule.objects.get(name=name).name == name
        assert SignInDay.objects.get(object_id=name).object_id == name
    assert Schedule.objects.filter(name__icontains="A").filter(name__in="aA").count() == 2  # as the admin searches
