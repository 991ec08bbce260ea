#!lua flags=allow-oom
-- Delete an index.
--
-- KEYS[1]     state  hash: parameters and shape of an index, and what it counts
-- KEYS[2]     lease  string: the token of a rebuild
-- KEYS[3...]  keys          of its generations
-- ARGV[1]     shape  that the caller knows
-- returns     the stored shape. If it is another one, nothing was changed

local shape = redis.call("HGET", KEYS[1], "shape") or ""
if shape == ARGV[1] then
    redis.call("UNLINK", unpack(KEYS))
end
return shape
