"""The handler as ``LOGGING`` sets it up."""

import logging.config

import pytest

from redis_kit.logs import RedisHandler


def configure(**options):
    handler = {"class": "redis_kit.logs.RedisHandler", **options}
    logging.config.DictConfigurator({"version": 1}).configure_handler(handler)


def test_level_is_the_only_argument():
    configure(level="ERROR")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'using'. Set REDIS_KIT\['LOGS'\]\['USING'\]"):
        configure(using="logs")
    with pytest.raises(TypeError, match="Did you mean 'level'"):
        RedisHandler(levle="ERROR")
