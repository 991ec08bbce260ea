"""The daily check-in: one button, a streak and a calendar."""

from datetime import date, timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

MAX_AGE = timedelta(366)  # of the calendar's first month


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def check_in(request: HttpRequest, year: int | None = None, month: int | None = None) -> HttpResponse:
    """Check in, or show a month of check-ins, by default the current one."""
    if request.method == "POST":
        return _checked_in(request)
    today = timezone.localdate()
    try:
        first = date(year or today.year, month or today.month, 1)
    except ValueError:
        raise Http404 from None
    oldest = (today - MAX_AGE).replace(day=1)
    if not oldest <= first <= today:
        raise Http404
    following = (first + timedelta(31)).replace(day=1)
    context = {
        "month": first,
        "before": (first - timedelta(1)).replace(day=1) if first > oldest else None,
        "following": following if following <= today else None,
        "is_done": request.user.signed_in_on(today),
        "streak": request.user.sign_in_streak(),
        "longest": request.user.longest_sign_in_streak(),
        "total": request.user.sign_in_count(),
    }
    return render(request, "reading/check_in.html", context)


def _checked_in(request: HttpRequest) -> HttpResponse:
    result = request.user.sign_in()
    if not result.new:
        messages.info(request, "You have already checked in today.")
    elif result.milestones:
        messages.success(request, f"You have reached {max(result.milestones)} days in a row!")
    else:
        messages.success(request, f"You have checked in. Days in a row: {result.streak}.")
    return redirect("check-in")
