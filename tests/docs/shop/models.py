"""The models that code blocks use."""

from django.db import models

from redis_kit.locks import FencedModelMixin


class Product(models.Model):
    """Something to buy."""

    name = models.CharField(max_length=100, default="Lamp")
    stock = models.IntegerField(default=10)

    def __str__(self):
        return self.name


class Order(models.Model):
    """Somebody bought something."""

    customer = models.CharField(max_length=100, default="joe")
    paid = models.BooleanField(default=False)

    def __str__(self):
        return f"Order {self.pk}"


class Article(models.Model):
    """Something to read."""

    title = models.CharField(max_length=100, default="News")
    slug = models.SlugField(default="news")

    def __str__(self):
        return self.title


class Batch(models.Model):
    """Images that are resized together."""

    left = models.JSONField(default=list)

    class Meta:
        required_db_features = ("supports_json_field",)  # else each check of the models asks the database

    def __str__(self):
        return f"Batch {self.pk}"


class Account(FencedModelMixin, models.Model):
    """A model that only the newest holder of a lock changes."""

    name = models.CharField(max_length=100)
    balance = models.IntegerField(default=0)

    def __str__(self):
        return self.name
