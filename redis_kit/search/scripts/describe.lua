#!lua flags=no-writes
-- Read what is stored about an index.
--
-- KEYS[1]  state      hash: parameters and shape of an index, and what is counted
-- KEYS[2]  lease      string: the token of a rebuild
-- KEYS[3]  announced  zset: changes whose commit is to come
-- KEYS[4]  committed  zset: changes that wait for their writer
-- KEYS[5]  empty      zset: the latest queries without a result, by their times
-- KEYS[6]  slow       zset: the latest slow queries, by their times
-- ARGV[1]  last       place of the last query to return of each kind
-- returns  the fields of the state, the token of a running rebuild or nothing, the identity of the server, the number of
--          changes that wait, and queries without a result and slow ones with their times, the latest first

-- @include redis_kit.core.indexes:_identity
local waiting = redis.call("ZCARD", KEYS[3]) + redis.call("ZCARD", KEYS[4])
local empty = redis.call("ZRANGE", KEYS[5], 0, ARGV[1], "REV", "WITHSCORES")
local slow = redis.call("ZRANGE", KEYS[6], 0, ARGV[1], "REV", "WITHSCORES")
return {redis.call("HGETALL", KEYS[1]), redis.call("GET", KEYS[2]), read_identity(), waiting, empty, slow}
