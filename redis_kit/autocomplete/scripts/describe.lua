#!lua flags=no-writes
-- Read what is stored about an index.
--
-- KEYS[1]     state  hash: parameters and shape of an index
-- KEYS[2]     lease  string: the token of a rebuild
-- KEYS[3...]  keys   terms, entries and scopes of a generation
-- returns     parameters, shape and completeness of the state; the token of a rebuild; the identity of the server; the
--             numbers of entries and scopes; and the memory of the keys, in bytes

local terms, entries, scopes, memory = KEYS[3], KEYS[4], KEYS[5], 0
-- @include redis_kit.core.indexes:_identity
for place = 3, #KEYS do
    memory = memory + (redis.call("MEMORY", "USAGE", KEYS[place]) or 0)
end
local state = redis.call("HMGET", KEYS[1], "parameters", "shape", "complete")
local counts = {terms and redis.call("HLEN", entries) or 0, terms and redis.call("HLEN", scopes) or 0}
return {state, redis.call("GET", KEYS[2]), read_identity(), counts[1], counts[2], memory}
