"""Copy page views of closed periods into the database, export them by day, or list the most viewed pages."""

from redis_kit.pageviews.commands.rk_pageviews import Command as Command
