"""See page_load.py, which needs Django to be set up."""

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.chaos.dashboard.page_load import main

    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
