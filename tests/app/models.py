"""The models that tests use."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Lower

from redis_kit.locks import FencedModelMixin
from redis_kit.signins import SignInMixin


class User(SignInMixin, AbstractUser):
    """A user who can sign in."""


class Device(SignInMixin, models.Model):
    """Another model that signs in, with a primary key that is not a number."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)

    def __str__(self):
        return str(self.id)


class Account(FencedModelMixin, models.Model):
    """A model that only the newest holder of a lock changes."""

    name = models.CharField(max_length=20, unique=True)
    balance = models.IntegerField(default=0)
    owner = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="accounts")
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self):
        return self.name


class Place(models.Model):
    """The base of models with a place."""

    city = models.CharField(max_length=20)

    def __str__(self):
        return self.city


class Shop(FencedModelMixin, Place):
    """With the fence in its own table, and the city in the other one."""

    takings = models.IntegerField(default=0)


class Kiosk(Shop):
    """With the fence in the table of its base."""


class Region(models.Model):
    """A model whose key is text."""

    code = models.CharField(max_length=5, primary_key=True)

    def __str__(self):
        return self.code


class Leaflet(models.Model):
    """A model with values that the database makes."""

    title = models.CharField(max_length=50)
    slug = models.GeneratedField(
        expression=Lower("title"), output_field=models.CharField(max_length=50), db_persist=True
    )
    edition = models.IntegerField(db_default=7)
    region = models.ForeignKey(Region, null=True, on_delete=models.CASCADE)

    def __str__(self):
        return self.title


class Page(models.Model):
    """A page to search for."""

    title = models.CharField(max_length=200)
    body = models.TextField(default="", blank=True)
    tags = models.JSONField(default=list)
    votes = models.IntegerField(default=0)
    published = models.DateTimeField(null=True)

    def __str__(self):
        return self.title
