#!lua flags=no-writes
-- Return how many jobs of a queue another system took, how often it did not take one, and the last error.
--
-- KEYS[1]  handovers  hash: sent, failed, sent_at and failed_at in ms, error
-- returns  its fields and values

return redis.call("HGETALL", KEYS[1])
