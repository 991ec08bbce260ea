"""The Django project of peers that are backends of ``django.tasks``. The variant names the backend."""
