"""A strict Content-Security-Policy, which the dashboard must not violate."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'"
ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>'  # a browser that got none would ask for it again with each page


def strict(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that allows only files of the site."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path == "/favicon.ico":
            return HttpResponse(ICON, "image/svg+xml", headers={"Cache-Control": "max-age=3600"})
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    return middleware
