#!lua flags=no-writes
-- Read what is stored about an index.
--
-- KEYS[1]  state      hash: parameters and shape of an index, and what is counted
-- KEYS[2]  lease      string: the token of a rebuild
-- KEYS[3]  announced  zset: changes whose commit is to come
-- KEYS[4]  committed  zset: changes that wait for their writer
-- KEYS[5]  empty      zset: the latest queries without a result, by their times
-- KEYS[6]  slow       zset: the latest slow queries, by their times
-- ARGV[1]  limit      number of queries to return of each kind
-- returns  the fields of the state, the token of a running rebuild or nothing, the identity of the server, the number of
--          changes that wait, and queries without a result and slow ones with their times, the latest first

-- @include redis_kit.core.indexes:_identity
local clock = redis.call("TIME")
local since = clock[1] * 1000 - 86400000
local function latest(key)
    return redis.call("ZRANGE", key, "+inf", since, "BYSCORE", "REV", "LIMIT", 0, ARGV[1], "WITHSCORES")
end
local waiting = redis.call("ZCARD", KEYS[3]) + redis.call("ZCARD", KEYS[4])
return {redis.call("HGETALL", KEYS[1]), redis.call("GET", KEYS[2]), read_identity(), waiting, latest(KEYS[5]), latest(KEYS[6])}
