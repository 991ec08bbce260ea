"""The daily check-in: a button, a streak and a calendar; a missed day can be made up, and the next one frozen."""

from datetime import date, timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from redis_kit.signins.errors import NoneLeft

DAY = timedelta(1)
MAX_AGE = timedelta(366)  # of the calendar's first month


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def check_in(request: HttpRequest, year: int | None = None, month: int | None = None) -> HttpResponse:
    """Check in, make yesterday up or freeze tomorrow; or show a month of check-ins, by default the current one."""
    if request.method == "POST":
        _change(request)
        return redirect("check-in")
    today = timezone.localdate()
    try:
        first = date(year or today.year, month or today.month, 1)
    except ValueError:
        raise Http404 from None
    oldest = (today - MAX_AGE).replace(day=1)
    if not oldest <= first <= today:
        raise Http404
    following = (first + timedelta(31)).replace(day=1)
    came_yesterday, is_done, *_ = request.user.sign_in_week(today - DAY)
    context = {
        "month": first,
        "before": (first - DAY).replace(day=1) if first > oldest else None,
        "following": following if following <= today else None,
        "is_done": is_done,
        "can_make_up": not came_yesterday,
        "summary": request.user.sign_in_summary(),
    }
    return render(request, "reading/check_in.html", context)


def _change(request: HttpRequest) -> None:
    today, action = timezone.localdate(), request.POST.get("action")
    try:
        if action == "make up":
            result = request.user.make_up_sign_in(today - DAY)
            messages.success(request, f"You have made up yesterday. Days in a row: {result.streak}.")
        elif action == "freeze":
            request.user.freeze_sign_ins(today + DAY)
            messages.success(request, "Tomorrow is frozen: your streak goes on without a check-in.")
        else:
            _check_in(request)
    except NoneLeft:
        messages.warning(request, "You have none left this month.")


def _check_in(request: HttpRequest) -> None:
    result = request.user.sign_in()
    if not result.new:
        messages.info(request, "You have already checked in today.")
    elif result.milestones:
        messages.success(request, f"You have reached {max(result.milestones)} days in a row!")
    else:
        messages.success(request, f"You have checked in. Days in a row: {result.streak}.")
