"""Redis for Django beyond caching. Import from the component: ``redis_kit.locks``, ``redis_kit.queues``, ..."""

__version__ = "0.1.0"
