#!lua
-- Reserve numbers for nodes that a running step adds.
--
-- @keys meta
-- ARGV[1]  count  how many
-- ARGV[2]  most   nodes that a workflow may have
-- returns  the first of them; 0 if the workflow does not run, -1 if it would have too many

if redis.call("HGET", meta, "status") ~= "running" then
    return 0
end
local last = redis.call("HINCRBY", meta, "next", ARGV[1])
if last > tonumber(ARGV[2]) then
    redis.call("HINCRBY", meta, "next", -ARGV[1])
    return -1
end
return last - ARGV[1]
