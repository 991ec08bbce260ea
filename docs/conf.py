"""How Sphinx builds these pages. Nothing is fetched from the network."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402

django.setup()

from redis_kit import __version__  # noqa: E402

project = "django-redis-kit"
author = "django-redis-kit contributors"
copyright = f"2026, {author}"
release = version = __version__

FOREIGN_BASES = (
    *("tuple", "str", "int", "Exception", "BaseException", "RuntimeError", "ValueError", "KeyError", "AttributeError"),
    *("LockError", "Model", "ImproperlyConfigured", "TestCase", "DiscoverRunner", "ModelBackend", "Signal"),
    *("Primitive", "BaseThrottle", "SimpleRateThrottle", "Task", "TaskResult", "PermissionDenied", "Mapping", "dict"),
)
extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_member_order = "groupwise"
# Methods of the package's own bases are shown, those of Python, Django and other libraries are not.
autodoc_default_options = {"inherited-members": ", ".join(FOREIGN_BASES)}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
# Types in signatures are shown, whether a page describes them or not.
nitpick_ignore_regex = [("py:.*", ".*")]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False


def setup(app):
    """Keep Sphinx's directives out of the pages, so that these also read on a code host."""
    from directives import add_directives, skip_inner_methods

    app.connect("source-read", add_directives)
    app.connect("autodoc-skip-member", skip_inner_methods)
