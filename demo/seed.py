"""Data of the site before its first visitor: readers, articles, and some weeks of history."""

import random
from datetime import datetime, timedelta

from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from demo.articles import ARTICLES
from example_project.reading.models import Article, ArticleIndex, Author, User, article_slugs, authors
from redis_kit.pageviews import PageViews, flush
from redis_kit.pageviews.batch import Event, identified
from redis_kit.pageviews.buffer import buffer

ADMIN = "admin"  # and the password
PASSWORD = "reading"
READERS = (
    *("ada", "bo", "chen", "dora", "emil", "fay", "gil", "hana", "ivo", "jun", "kai", "lena"),
    *("milo", "nia", "olga", "per", "quinn", "rosa", "sam", "tove", "uma", "vera", "wim", "yara"),
)
FIRST_NAMES = (
    "Ada",
    "Björn",
    "Chloé",
    "Dragan",
    "Élodie",
    "Farid",
    "Grace",
    "Hana",
    "Íñigo",
    "Jürgen",
    "Kaya",
    "Łucja",
)
LAST_NAMES = (
    *(
        "Lovelace",
        "Ångström",
        "Bernoulli",
        "Çelik",
        "Dvořák",
        "Erdős",
        "Fermat",
        "Gödel",
        "Hopper",
        "Ito",
        "Jónsdóttir",
    ),
    *(
        "Kovalevskaya",
        "Lamarr",
        "Müller",
        "Noether",
        "O'Neil",
        "Poincaré",
        "Ramanujan",
        "Šimić",
        "Turing",
        "van der Waals",
    ),
)
HISTORY = 6  # check-ins of the administrator in a row, up to yesterday
MADE_UP, FROZEN = 3, 5  # days ago; the streak goes on over a frozen day, which does not count
SPARED = 0.6  # the part of the readers who made a missed day up, or froze it
WEEKS = 5  # of occasional check-ins by the readers
VIEWED = 55  # days with page views: those that the dashboard shows, and as many before
REFERRERS = ("", "", "", "search.example", "search.example", "news.example", "forum.example", "books.example")
CAMPAIGNS = ("", "", "", "", "", "letter / email / autumn", "fair / print / books")


def prepare() -> bool:
    """Migrate the database, and fill it and the server if they are empty. Return whether the server was empty."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, skip_checks=True)
    if not Author.objects.exists():  # nor in a database from before there were any
        Author.objects.bulk_create(Author(name=name) for name in author_names())
    if not Article.objects.exists():
        fill_database()
    article_slugs.rebuild()
    authors.rebuild()
    ArticleIndex.instance.rebuild()
    is_new = not PageViews.site().views(timezone.localdate() - timedelta(VIEWED))
    if is_new:
        dice = random.Random(7)  # a fixed seed: each new site has the same history
        seed_views(dice)
        seed_sign_ins(dice)
    connection.close()
    return is_new


@transaction.atomic
def fill_database() -> None:
    """Create the readers and the articles in one transaction."""
    User.objects.create_superuser(ADMIN, password=ADMIN)
    password = make_password(PASSWORD)
    User.objects.bulk_create(User(username=name, password=password) for name in READERS)
    writers = Author.objects.order_by("pk")[: len(ARTICLES)]
    Article.objects.bulk_create(
        Article(position=place, author=author, **text._asdict())
        for place, (text, author) in enumerate(zip(ARTICLES, writers, strict=True))
    )


def author_names() -> list[str]:
    """Return some hundred names in several scripts."""
    names = [f"{first} {last}" for last in LAST_NAMES for first in FIRST_NAMES]
    return [*names, "王小明", "محمد أمين", "דוד כהן", "สมชาย ใจดี", "Ελένη Παπαδάκη", "Анна Каренина"]


def seed_views(dice: random.Random) -> None:
    """Count views of articles on the days before today: more of late, more at noon, and fewer at weekends."""
    for ago in range(VIEWED, 0, -1):
        is_weekend = moment(dice, ago).weekday() > 4
        for _ in range(dice.randrange(15, 35) * (VIEWED + 30 - ago) // (VIEWED * (2 if is_weekend else 1))):
            text = ARTICLES[min(dice.randrange(len(ARTICLES)), dice.randrange(len(ARTICLES)))]
            visitor, origin = identified(f"reader {dice.randrange(60)}"), dice.choice(REFERRERS)
            at = moment(dice, ago, hour=dice.gauss(13, 4))
            buffer.record(Event(at, "article", text.slug, visitor, origin, dice.choice(CAMPAIGNS)))
    flush()


def seed_sign_ins(dice: random.Random) -> None:
    """Check the readers in on some of the days before today, and the administrator on the last ones.

    Some readers made one of the last days up, and froze another. The administrator did both, and no day was missed.
    """
    today = timezone.localdate()
    for reader in User.objects.all():
        diligence, is_admin = dice.random(), reader.username == ADMIN
        missed = (
            {MADE_UP, FROZEN} if is_admin else {ago for ago in range(1, 7 * WEEKS + 1) if dice.random() > diligence}
        )
        for ago in range(HISTORY + 1 if is_admin else 7 * WEEKS, 0, -1):
            if ago not in missed:
                reader.sign_in(today - timedelta(ago))
        if is_admin or dice.random() < SPARED:
            for ago in missed & {MADE_UP}:
                reader.make_up_sign_in(today - timedelta(ago))
            for ago in missed & {FROZEN}:
                reader.freeze_sign_ins(today - timedelta(ago))


def moment(dice: random.Random, ago: int, *, hour: float = 12) -> datetime:
    """Return a random time near an hour of the day that was ``ago`` days before today."""
    start = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(ago)
    return start + timedelta(seconds=min(max(hour, 0), 23) * 3600 + dice.randrange(3600))
