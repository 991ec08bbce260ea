"""A model with an index, for the loop."""

from django.db import models

from redis_kit.search import Facet, SearchIndex, Sort, Text


class Note(models.Model):
    """A row that is saved again and again; its text names the version."""

    text = models.TextField()
    version = models.IntegerField()

    def __str__(self):
        return self.text


class NoteIndex(SearchIndex):
    """The index that must not lose, double or keep anything."""

    model = Note
    text = Text()
    parity = Facet()
    version = Sort()

    def prepare_parity(self, row):
        """Return a value that changes with each version."""
        return row.version % 3
