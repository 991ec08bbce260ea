#!lua flags=no-writes
-- Read what is stored about a filter.
--
-- KEYS[1]  state  hash: parameters, shape and items of a filter
-- KEYS[2]  lease  string: the token of a rebuild
-- returns  the fields of the state, the token of a running rebuild or nothing, and the identity of the server

-- @include redis_kit.core.indexes:_identity
return {redis.call("HGETALL", KEYS[1]), redis.call("GET", KEYS[2]), read_identity()}
