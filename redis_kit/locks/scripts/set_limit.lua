#!lua flags=allow-oom
-- Set the limit of a semaphore, on a full server too: that is when an operator lowers it.
--
-- KEYS[1]  limit   string
-- ARGV[1]  number  of slots
-- returns  nothing
redis.call("SET", KEYS[1], ARGV[1])
