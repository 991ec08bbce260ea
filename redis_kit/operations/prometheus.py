"""The page with metrics for Prometheus."""

import hmac

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from redis_kit.core import conf
from redis_kit.core.metrics.prometheus import RedisKitCollector, exposition
from redis_kit.operations.settings import OperationsSettings

__all__ = ["RedisKitCollector", "metrics"]
PERMISSION = "redis_kit.view_server"
REFUSED = (
    "Send the token in REDIS_KIT['OPERATIONS']['METRICS_TOKEN'] as a bearer token, or sign in as a user with the "
    f"permission {PERMISSION}.\n"
)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics of all components, for a path of the project.

    The request needs the bearer token of ``METRICS_TOKEN``, or a user with the permission ``view_server``; any other
    gets 401. Three round trips for each connection, on a Cluster two and one for each node.
    """
    if not _may_see(request):
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'}
        return HttpResponse(REFUSED, status=401, content_type="text/plain", headers=headers)
    body, content_type = exposition(request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=content_type)


def _may_see(request: HttpRequest) -> bool:
    token = conf.section(OperationsSettings).METRICS_TOKEN
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if token and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return True
    user = getattr(request, "user", None)
    return user is not None and user.has_perm(PERMISSION)
