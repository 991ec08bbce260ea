"""The pages of the benchmark of search, and their index."""

from django.db import models

from redis_kit.search import Facet, SearchIndex, Sort, Text


class Page(models.Model):
    """A short document."""

    title = models.TextField()
    body = models.TextField()
    kind = models.TextField()
    votes = models.IntegerField()

    def __str__(self) -> str:
        return self.title


class PageIndex(SearchIndex):
    """The index that is measured."""

    model = Page
    title = Text(weight=3)
    body = Text()
    kind = Facet()
    votes = Sort()
