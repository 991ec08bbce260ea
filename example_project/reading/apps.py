"""The app of the example site."""

from django.apps import AppConfig


class ReadingConfig(AppConfig):
    """Articles and their readers."""

    name = "example_project.reading"
    label = "reading"
    verbose_name = "Reading room"
