"""Mailboxes as a component."""

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.mailbox.settings import MailboxSettings


class Mailbox(Component):
    """Inboxes and group chats."""

    settings = MailboxSettings
    commands = (
        "get hdel hget hincrby hkeys hlen hmget hset hvals lindex llen lrange lset ltrim pexpire rpush set spublish "
        "ssubscribe strlen sunsubscribe unlink zadd zcard zcount zrange zrem zremrangebyrank zremrangebyscore zscore"
    )
    panels = ("redis_kit.mailbox.dashboard.panel.MailboxPanel",)
    group = _("Messages")
    permissions = (("view_messages", "Can read messages of others, which is logged"),)
    metrics = ("redis_kit.mailbox.metrics.MailboxMetrics",)
