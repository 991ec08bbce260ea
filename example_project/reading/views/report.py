"""A report that takes some seconds and that only one process may build at a time."""

import time

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from example_project.reading.models import Article, Report
from redis_kit.locks import Lock, LockNotAcquired, StaleFence, fenced

NAME = "report"


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: HttpRequest) -> HttpResponse:
    """Show the last report, or build a new one; who comes while it is being built is told by whom."""
    if request.method != "POST":
        return _page(request, is_busy=Lock(NAME).locked())
    try:
        built = build(request.user.get_username() or "a visitor")
    except LockNotAcquired as busy:
        return _page(request, is_busy=True, holder=busy.holder, status=409)
    except StaleFence:
        messages.warning(request, "This took so long that somebody else began anew. Nothing was written here.")
        return _page(request, is_busy=Lock(NAME).locked(), status=409)
    messages.success(request, f"The report is done. It took {built.seconds:.1f} s.")
    return redirect("report")


def build(builder: str) -> Report:
    """Build a report.

    Raises LockNotAcquired while another process, thread or task is building one, and StaleFence where this one took
    longer than its lease and another has begun since.
    """
    with Lock(NAME, timeout=30, blocking=False) as lease:
        # Who began a report and did not finish it has lost the lock, and can't finish it from here on.
        fenced(Report.objects.filter(finished_at__isnull=True), lease).update()
        report = Report(builder=builder)
        report.save_fenced(lease)
        articles = list(Article.objects.all())
        for article in articles:
            # Stands for the long queries of a real report.
            time.sleep(settings.READING_REPORT_SECONDS / len(articles))
            report.lines.append((article.title, len(article.body.split()), article.votes))
        report.finished_at = timezone.now()
        report.save_fenced(lease)
    return report


def _page(request: HttpRequest, *, is_busy: bool, holder: str = "", status: int = 200) -> HttpResponse:
    context = {
        "report": Report.objects.filter(finished_at__isnull=False).first(),
        # One that is unfinished without the lock was left behind by a process that died.
        "running": Report.objects.filter(finished_at__isnull=True).first() if is_busy else None,
        "is_busy": is_busy,
        "holder": holder,
    }
    return render(request, "reading/report.html", context, status=status)
