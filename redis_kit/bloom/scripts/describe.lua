#!lua flags=no-writes
-- Read what is stored about a filter.
--
-- KEYS[1]  state   hash: parameters, shape and items of a filter
-- KEYS[2]  lease   string: the token of a rebuild
-- ARGV[1]  source  database of a model's filter; "" for any
-- returns  the fields of the state, the token of a running rebuild or nothing, and 1 if it is complete

-- @include redis_kit.core.indexes:_identity
-- @include _complete
local stored = redis.call("HMGET", KEYS[1], "complete", "shape")
local complete = is_complete(stored[1], stored[2] or "", ARGV[1])
return {redis.call("HGETALL", KEYS[1]), redis.call("GET", KEYS[2]), complete and 1 or 0}
