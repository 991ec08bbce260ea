"""Run the site under uvicorn: ``python serve.py PORT``. Ends on SIGTERM, after the requests that it is answering."""

import sys
from pathlib import Path


def main(port: int) -> None:
    """Serve on the loopback interface only."""
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    import uvicorn

    config = uvicorn.Config(
        "example_project.asgi:application",
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="on",  # at the end of which asgi.py counts the last page views
        # The kit reads X-Forwarded-For itself, and only what REDIS_KIT["TRUSTED_PROXIES"] allows.
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
