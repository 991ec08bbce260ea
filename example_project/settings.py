"""Settings of the example site. Environment variables override what a run of the demo may change."""

import os
from pathlib import Path

DATABASE = os.environ.get("READING_DATABASE")
if not DATABASE:
    VAR = Path(__file__).resolve().parent.parent / "var"
    VAR.mkdir(exist_ok=True)
    DATABASE = str(VAR / "reading.sqlite3")

SECRET_KEY = "for-a-demo-on-this-machine-only-0123456789"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "example_project.urls"
ASGI_APPLICATION = "example_project.asgi.application"
WSGI_APPLICATION = "example_project.wsgi.application"

INSTALLED_APPS = [
    "demo",  # manage.py rk_demo, which drives and checks this site
    "example_project.reading",  # before the admin and the kit, since it extends a template of each
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "redis_kit",
]
MIDDLEWARE = [
    "redis_kit.pageviews.middleware.PageViewMiddleware",
    "redis_kit.core.web.log_fields.log_requests",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE,
        "OPTIONS": {
            # The site and the worker write at the same time: wait instead of failing.
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "reading.User"
LOGIN_URL = "log-in"
LOGIN_REDIRECT_URL = "articles"
LOGOUT_REDIRECT_URL = "articles"
PASSWORD_HASHERS = ["example_project.reading.hashers.QuickHasher"]
# Both use cookies, so that a page for an anonymous visitor needs no database.
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"

# The dashboard in either language: the button is at the top of each page of the admin.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {
        "console": {"class": "logging.StreamHandler"},
        "job": {"class": "redis_kit.queues.logs.JobLogHandler"},
        "redis": {"class": "redis_kit.logs.RedisHandler"},
    },
    "root": {"handlers": ["redis"], "level": "WARNING"},
    "loggers": {
        "reading": {"handlers": ["job"], "level": "INFO"},
        "redis_kit": {"handlers": ["console"]},
        # The demo's visitors cause 404 and 429 on purpose.
        "django.request": {"handlers": ["console", "redis"], "level": "ERROR", "propagate": False},
    },
}

REDIS_KIT = {
    "CONNECTIONS": {"default": {"EMBEDDED": True}},
    "PREFIX": "reading",
    # rk_demo runs on this machine and sets the address of each visitor in X-Forwarded-For.
    "TRUSTED_PROXIES": ["127.0.0.1/32"],
    "QUEUES": {
        "NAMES": ["letters", "parcels", "orders", "bindery", "newsletters"],
        "QUEUE_OPTIONS": {"parcels": {"DONE_LIMIT": 200}},
    },
}

READING_VOTE_RATE = os.environ.get("READING_VOTE_RATE", "5/m")
READING_REPORT_SECONDS = float(os.environ.get("READING_REPORT_SECONDS", "4"))
