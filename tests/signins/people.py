"""People who sign in, without a database."""

import itertools

from tests.app.models import User

numbers = itertools.count(1)


def saved(pk, model=User):
    """Return an instance as the database would give it."""
    return model.from_db("default", [model._meta.pk.attname], [pk])
