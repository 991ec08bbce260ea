"""How the loads of this folder are run by hand: as ``python -m``, with the settings of the tests."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import django


def run(main: Callable[[], int]) -> NoReturn:
    """Set up Django, and end this program with the exit code of ``main``."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    sys.exit(main())
