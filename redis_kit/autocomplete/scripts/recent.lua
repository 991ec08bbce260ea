#!lua
-- Put a value at the beginning of a list, and drop its place of before.
--
-- KEYS[1]  values  list: values, the latest first
-- ARGV[1]  value   to put there
-- ARGV[2]  size    of the list at most
-- returns  nothing
redis.call("LREM", KEYS[1], 0, ARGV[1])
redis.call("LPUSH", KEYS[1], ARGV[1])
redis.call("LTRIM", KEYS[1], 0, ARGV[2] - 1)
