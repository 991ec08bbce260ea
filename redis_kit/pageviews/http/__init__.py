"""A request on its way to an event: the visitor, the origin, and what the middleware and the beacon share."""
