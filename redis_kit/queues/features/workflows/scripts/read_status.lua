#!lua flags=allow-oom
-- Return what is known of a workflow as a whole, and note that a caller waits for its end.
--
-- @keys meta, active
-- ARGV[1]  waits   1 when the caller waits, else 0
-- returns  status, name, created and ended in ms, steps, done, failed, next number, how many are due or run; nothing
--          without a workflow

-- @check_types meta, active
local fields = {"status", "name", "created", "ended", "steps", "done", "failed", "next", "waiting"}
local known = redis.call("HMGET", meta, unpack(fields))
if not known[1] then
    return {}
end
if ARGV[1] == "1" and known[1] == "running" then
    redis.call("HSET", meta, "waiting", math.max(0, math.min(1e6, tonumber(known[9]) or 0)) + 1)
end
for at = 1, 8 do
    known[at] = known[at] or ""
end
known[9] = redis.call("ZCARD", active)
return known
