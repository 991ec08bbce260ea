"""Stemmers of the package ``snowballstemmer``, for many languages: ``pip install 'django-redis-kit[search]'``."""

from collections.abc import Callable

import snowballstemmer

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import did_you_mean


def snowball(language: str) -> Callable[[str], str]:
    """Return a function from words to stems, for ``SearchIndex.stem``. Raises ConfigurationError."""
    if language not in (languages := snowballstemmer.algorithms()):
        hint = did_you_mean(language, languages, f"There are: {', '.join(languages)}.")
        raise ConfigurationError(f"snowballstemmer has no language {language!r}. {hint}")
    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
