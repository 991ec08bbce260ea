"""The models of the reading room. Everything else that it shows is in Redis."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.urls import reverse

from redis_kit.autocomplete import ModelAutocomplete
from redis_kit.bloom import ModelFilter
from redis_kit.locks import FencedModelMixin
from redis_kit.search import SearchIndex, Text
from redis_kit.signins.mixin import SignInMixin


class User(SignInMixin, AbstractUser):
    """A reader, who may check in once a day."""


class Author(models.Model):
    """Somebody who writes articles."""

    name = models.CharField(max_length=100)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


#: The admin of articles finds authors in it, once ``rk_autocomplete rebuild`` has filled it.
authors = ModelAutocomplete(Author, ["name"])


class Article(models.Model):
    """An article of the reading room."""

    slug = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    author = models.ForeignKey(Author, on_delete=models.SET_NULL, null=True, blank=True)
    summary = models.CharField(max_length=250)
    body = models.TextField()
    position = models.PositiveSmallIntegerField(default=0)
    votes = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Return the address of its page."""
        return reverse("article", args=[self.slug])


#: Addresses of articles that do not exist are answered without a query, once ``rk_bloom rebuild`` has filled it.
article_slugs = ModelFilter(Article, "slug", capacity=10_000)


class ArticleIndex(SearchIndex):
    """The words of articles. It follows their changes, once ``rk_search rebuild`` has filled it."""

    model = Article
    title = Text(weight=3)
    summary = Text(weight=2)
    body = Text()

    def fallback(self, text: str, filters: Mapping[str, Sequence[str]]) -> models.QuerySet[Article]:
        """Return the articles with this text in their titles, for as long as the index can't answer."""
        return Article.objects.filter(title__icontains=text)


class Letter(models.Model):
    """An article or a reminder that a job delivered to a reader.

    The constraint makes the jobs repeatable: a job that runs twice delivers one letter.
    """

    class Kind(models.TextChoices):
        """The kind of a letter."""

        ARTICLE = "article", "Article"
        REMINDER = "reminder", "Reminder"

    reader = models.ForeignKey(User, on_delete=models.CASCADE, related_name="letters")
    article = models.ForeignKey(Article, on_delete=models.CASCADE)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    due_at = models.DateTimeField()
    arrived_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-arrived_at"]
        constraints = [models.UniqueConstraint(fields=["reader", "article", "kind", "due_at"], name="one_letter")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.article}"

    @property
    def late(self) -> timedelta:
        """Return the time from when it was due until it arrived."""
        return self.arrived_at - self.due_at


class Report(FencedModelMixin, models.Model):
    """A report on the articles; unfinished while it is being built. Its fence refuses a builder that was too slow."""

    builder = models.CharField(max_length=150)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    lines = models.JSONField(default=list)

    class Meta:
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return f"Report of {self.started_at:%Y-%m-%d %H:%M:%S} by {self.builder}"

    @property
    def seconds(self) -> float:
        """Return the seconds that it took to build; 0 while it is unfinished."""
        return (self.finished_at - self.started_at).total_seconds() if self.finished_at else 0.0
