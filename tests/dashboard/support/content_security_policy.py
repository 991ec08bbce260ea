"""A strict Content-Security-Policy, which the dashboard must not violate."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'"


def strict(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that allows only files of the site."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path == "/favicon.ico":  # which browsers ask for now and then
            return HttpResponse(status=204)
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    return middleware
