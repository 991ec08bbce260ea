"""A report that takes some seconds to build. Only one process may build it at a time."""

import logging
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

logger = logging.getLogger("reading.report")


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: HttpRequest) -> HttpResponse:
    """Show the last report, or build a new one. While it is being built, the answer names the builder."""
    if request.method != "POST":
        return _page(request, is_busy=Lock(NAME).locked())
    try:
        built = build(request.user.get_username() or "a visitor")
    except LockNotAcquired as busy:
        logger.warning("The report is already being built by %s", busy.holder)
        return _page(request, is_busy=True, holder=busy.holder, status=409)
    except StaleFence:
        messages.warning(request, "This build was too slow and another one has started. Nothing was saved.")
        return _page(request, is_busy=Lock(NAME).locked(), status=409)
    messages.success(request, f"The report is done. It took {built.seconds:.1f} s.")
    return redirect("report")


def build(builder: str) -> Report:
    """Build a report.

    Raises LockNotAcquired while another process, thread or task is building one. Raises StaleFence if this build took
    longer than its lease and another one has started since.
    """
    with Lock(NAME, timeout=30, blocking=False) as lease:
        # The builder of an unfinished report has lost the lock. From here on its writes are refused.
        fenced(Report.objects.filter(finished_at__isnull=True), lease).update()
        report = Report(builder=builder)
        report.save_fenced(lease)
        articles = list(Article.objects.all())
        for article in articles:
            # In place of the slow queries of a real report.
            time.sleep(settings.READING_REPORT_SECONDS / len(articles))
            report.lines.append((article.title, len(article.body.split()), article.votes))
        report.finished_at = timezone.now()
        report.save_fenced(lease)
    return report


def _page(request: HttpRequest, *, is_busy: bool, holder: str = "", status: int = 200) -> HttpResponse:
    context = {
        "report": Report.objects.filter(finished_at__isnull=False).first(),
        # An unfinished report without the lock was left by a process that died.
        "running": Report.objects.filter(finished_at__isnull=True).first() if is_busy else None,
        "is_busy": is_busy,
        "holder": holder,
    }
    return render(request, "reading/report.html", context, status=status)
