"""How Sphinx builds these pages. Nothing is fetched from the network."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

from redis_kit import __version__  # noqa: E402

project = "django-redis-kit"
author = "django-redis-kit contributors"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["myst_parser", "options"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
