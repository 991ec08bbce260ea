"""Stemmers of the package ``snowballstemmer``, for many languages: ``pip install 'django-redis-kit[search]'``."""

from collections.abc import Callable
from typing import cast

import snowballstemmer

from redis_kit.core.errors import ConfigurationError


def snowball(language: str) -> Callable[[str], str]:
    """Return a function from words to stems, for ``SearchIndex.stem``. Raises ConfigurationError."""
    if language not in (languages := snowballstemmer.algorithms()):
        raise ConfigurationError(f"snowballstemmer has no language {language!r}, but {', '.join(languages)}.")
    return cast("Callable[[str], str]", snowballstemmer.stemmer(language).stemWord)
