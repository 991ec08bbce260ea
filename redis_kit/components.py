"""The built-in components, as dotted paths. This module imports nothing."""

BUILTIN = (
    "redis_kit.locks.component.Locks",
    "redis_kit.throttling.component.Throttling",
    "redis_kit.queues.component.Queues",
    "redis_kit.pageviews.component.PageViews",
    "redis_kit.signins.component.SignIns",
    "redis_kit.bloom.component.Bloom",
    "redis_kit.autocomplete.component.Autocomplete",
    "redis_kit.search.component.Search",
    "redis_kit.mailbox.component.Mailbox",
    "redis_kit.operations.component.Operations",
    "redis_kit.logs.component.Logs",
    "redis_kit.dashboard.component.Dashboard",
)
