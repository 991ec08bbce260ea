"""Run the site under uvicorn: ``python site_server.py PORT``. SIGTERM ends it after the open requests."""

import sys
from pathlib import Path


def main(port: int) -> None:
    """Serve on the loopback interface only."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import uvicorn

    config = uvicorn.Config(
        "example_project.asgi:application",
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="on",  # when it ends, asgi.py counts the last page views
        # The kit reads X-Forwarded-For itself, and only from the proxies in REDIS_KIT["TRUSTED_PROXIES"].
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
