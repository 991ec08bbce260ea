"""The strict Content-Security-Policy that the dashboard must live under."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'"


def strict(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that forbids everything but files of the site."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path == "/favicon.ico":  # which browsers ask for now and then
            return HttpResponse(status=204)
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    return middleware
