"""The site for an ASGI server. It serves its static files too, since the demo has no web server in front."""

import os

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

from redis_kit.pageviews.asgi import FlushAtShutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application = FlushAtShutdown(ASGIStaticFilesHandler(get_asgi_application()))
