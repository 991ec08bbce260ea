"""Jobs, immediate and delayed: send an article, send a reminder, and show the letters."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from example_project.reading.models import Article, Letter
from example_project.reading.tasks import deliver

DELAYS = ((10, "10 seconds"), (60, "a minute"), (600, "10 minutes"))
MAX_DELAY = 3600  # seconds
MAX_SHOWN = 50


@require_POST
@login_required
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """Enqueue a job that sends an article."""
    article = get_object_or_404(Article, slug=slug)
    deliver.enqueue(Letter.Kind.ARTICLE.value, request.user.pk, article.pk, timezone.now())
    messages.success(request, f"“{article}” is on its way to you.")
    return redirect("letters")


@require_POST
@login_required
def remind(request: HttpRequest, slug: str) -> HttpResponse:
    """Enqueue a job that sends a reminder of an article after some seconds."""
    article = get_object_or_404(Article, slug=slug)
    asked = request.POST.get("seconds", "")
    seconds = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) <= 4 else 0
    if not 1 <= seconds <= MAX_DELAY:
        messages.warning(request, f"A reminder comes after 1 to {MAX_DELAY} seconds.")
        return redirect(article)
    due_at = timezone.now() + timedelta(seconds=seconds)
    deliver.using(run_after=due_at).enqueue(Letter.Kind.REMINDER.value, request.user.pk, article.pk, due_at)
    messages.success(request, f"You will be reminded of “{article}” in {seconds} s.")
    return redirect("letters")


@require_safe
@login_required
def letters(request: HttpRequest) -> HttpResponse:
    """Show the letters of this reader."""
    own_letters = Letter.objects.filter(reader=request.user.pk).select_related("article")
    return render(request, "reading/letters.html", {"letters": own_letters[:MAX_SHOWN]})
