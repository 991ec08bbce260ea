"""Views that are lost when a web server ends, with the times of a real site and without anything in its code.

``python -m tests.chaos.pageviews.shutdown 10`` starts each server 10 times, opens 30 pages one after another, and ends
it by a signal at once. It prints how many of the views Redis has.
"""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from tests.pageviews.support.web_servers import Site, gunicorn, look, runserver, uvicorn

VIEWS = 30
SERVERS = {
    "uvicorn": lambda port: uvicorn(port, application="bare"),
    "uvicorn --workers 2": lambda port: uvicorn(port, "--workers", "2", application="bare"),
    "uvicorn, FlushAtShutdown": lambda port: uvicorn(port),
    "gunicorn": lambda port: gunicorn(port),
    "gunicorn gthread --preload": lambda port: gunicorn(port, "--worker-class", "gthread", "--preload"),
    "runserver --noreload": lambda port: runserver(port, "--noreload"),
    "runserver": lambda port: runserver(port),
}
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def counted(folder, command, number):
    """Return how many of the views of a server are counted that a signal ends."""
    from django.conf import settings

    from redis_kit.core import connections
    from redis_kit.pageviews import PageViews
    from tests.fixtures.process import free_port

    connections.client().call("FLUSHDB")
    port = free_port()
    site = Site(Path(folder), zone=settings.TIME_ZONE, interval=1.0, quiet=0.05)
    server = site.start(port, command(port), settings.REDIS_KIT, own_interpreter=True)
    try:
        look(port, times=VIEWS)
        server.send_signal(number)
    finally:
        server.wait(60)
    return PageViews("front", on_failure="raise").views()


def main(arguments):
    """Run it and print the figures."""
    from django.test import override_settings

    from tests.fixtures.process import Server

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int)
    options, redis = parser.parse_args(arguments), Server(tcp=True)
    try:
        with override_settings(REDIS_KIT={"CONNECTIONS": {"default": redis.connection}}):
            for name, command in SERVERS.items():
                for number in SIGNALS:
                    with tempfile.TemporaryDirectory() as folder:
                        views = [counted(folder, command, number) for _ in range(options.rounds)]
                    complete = sum(one == VIEWS for one in views)
                    least = f"{options.rounds} rounds, least {min(views)}"
                    print(f"{name}, {number.name}: all {VIEWS} views in {complete} of {least}", flush=True)
    finally:
        redis.stop()


if __name__ == "__main__":
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    sys.exit(main(sys.argv[1:]))
