"""The site for a WSGI server. It serves its static files too, since the demo has no web server in front."""

import os

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application = StaticFilesHandler(get_wsgi_application())
