#!lua flags=no-writes
-- List the identities that a throttle refuses, the most refused first.
--
-- KEYS[1]  offenders  zset: entry -> refusals
-- ARGV[1]  limit      entries to return
-- returns  entries and refusals, alternating

return redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
