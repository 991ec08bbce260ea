#!lua flags=no-writes
-- Return how many calls identities wanted in the periods of a throttle in shadow mode.
--
-- KEYS[1]  demand  hash: calls in a period -> number of periods with that many
-- returns  calls and numbers, alternating

return redis.call("HGETALL", KEYS[1])
