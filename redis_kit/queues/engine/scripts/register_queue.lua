#!lua
-- Register a queue by its name.
--
-- KEYS[1]  names  set of the names of queues
-- ARGV[1]  name
-- ARGV[2]  limit  how many names there may be
-- returns  2 when it is registered now, 1 when it was, 0 when there are too many

if redis.call("SCARD", KEYS[1]) < tonumber(ARGV[2]) and redis.call("SADD", KEYS[1], ARGV[1]) == 1 then
    return 2
end
return redis.call("SISMEMBER", KEYS[1], ARGV[1])
