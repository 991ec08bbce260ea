"""What the site has before its first visitor comes: readers, articles, and some weeks of history."""

import random
from datetime import datetime, timedelta

from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from example_project.demo.texts import TEXTS
from example_project.reading.models import Article, User
from redis_kit.pageviews import PageViews

ADMIN = "admin"  # and the password
PASSWORD = "reading"
READERS = (
    *("ada", "bo", "chen", "dora", "emil", "fay", "gil", "hana", "ivo", "jun", "kai", "lena"),
    *("milo", "nia", "olga", "per", "quinn", "rosa", "sam", "tove", "uma", "vera", "wim", "yara"),
)
HISTORY = 6  # days in a row, up to yesterday, on which the administrator checked in
WEEKS = 5  # for which the readers have checked in now and then
VIEWED = 14  # days for which there are page views


def prepare() -> None:
    """Bring the database up to date, and fill it and the server where they are empty."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, skip_checks=True)
    if not Article.objects.exists():
        fill_database()
    if not PageViews.site().views(timezone.localdate() - timedelta(VIEWED)):
        dice = random.Random(7)  # the same history for everybody
        seed_views(dice)
        seed_sign_ins(dice)
    connection.close()


@transaction.atomic
def fill_database() -> None:
    """Put in the readers and the articles, all or none."""
    User.objects.create_superuser(ADMIN, password=ADMIN)
    password = make_password(PASSWORD)
    User.objects.bulk_create(User(username=name, password=password) for name in READERS)
    Article.objects.bulk_create(Article(position=place, **text._asdict()) for place, text in enumerate(TEXTS))


def seed_views(dice: random.Random) -> None:
    """Let some hundred visitors have read articles on the days before today."""
    for ago in range(1, VIEWED + 1):
        for _ in range(dice.randrange(15, 35)):
            text = TEXTS[min(dice.randrange(len(TEXTS)), dice.randrange(len(TEXTS)))]
            PageViews("article", text.slug).add(f"reader {dice.randrange(60)}", at=moment(dice, ago))


def seed_sign_ins(dice: random.Random) -> None:
    """Let the readers have checked in on some of the days before today, and the administrator on the last ones."""
    today = timezone.localdate()
    for reader in User.objects.all():
        diligence = dice.random()
        for ago in range(7 * WEEKS, 0, -1):
            is_admin = reader.username == ADMIN
            if (ago <= HISTORY) if is_admin else dice.random() < diligence:
                reader.sign_in(today - timedelta(ago))


def moment(dice: random.Random, ago: int) -> datetime:
    """Return some time of a day that is so many days ago."""
    start = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(ago)
    return start + timedelta(seconds=dice.randrange(86_400))
