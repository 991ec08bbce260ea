#!lua flags=allow-oom
-- Delete an index.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and what it counts
-- KEYS[2]     lease       string: the token of a rebuild
-- KEYS[3...]  keys        of its generations
-- ARGV[1]     parameters  from which the caller knows the keys
-- ARGV[2]     shape       from which it knows them
-- returns     nothing; or the stored parameters and shape if they are others, and nothing was changed

local stored = redis.call("HMGET", KEYS[1], "parameters", "shape")
local parameters, shape = stored[1] or ARGV[1], stored[2] or ""
if parameters ~= ARGV[1] or shape ~= ARGV[2] then
    return {parameters, shape}
end
redis.call("UNLINK", unpack(KEYS))
return {}
