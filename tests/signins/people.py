"""People who sign in, without a database."""

import itertools

numbers = itertools.count(1)


def saved(pk, model=None):
    """Return an instance as the database would give it, by default a user."""
    from tests.app.models import User

    model = model or User
    return model.from_db("default", [model._meta.pk.attname], [pk])
