#!lua flags=no-writes
-- Return one job and its state.
--
-- @keys jobs, ready, scheduled, dead, reasons, running, lanes, limits, parked
-- ARGV[1]  id
-- ARGV[2]  limit      how many running jobs are looked through for its worker
-- returns  state, id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or ""; nothing
--          without a job

local id, limit = ARGV[1], tonumber(ARGV[2])
-- @include _leave_lane
-- @include _awaited_limit
local record = redis.call("HGET", jobs, id)
if not record then
    return {}
end
local lane = lane_of(id)
local awaited, timed = awaited_limit(lane or "")
if redis.call("ZSCORE", ready, id) or waits_in_lane(id) then
    return {"ready", id, record, "", awaited, ""}
end
local due = redis.call("ZSCORE", scheduled, id)
if due then
    return timed == id and {"ready", id, record, "", awaited, ""} or {"scheduled", id, record, due, "", ""}
end
local died = redis.call("ZSCORE", dead, id)
if died then
    return {"dead", id, record, died, redis.call("HGET", reasons, id) or "", ""}
end
local worker, ending = "", "/" .. id
for _, member in ipairs(redis.call("ZRANGE", running, 0, limit - 1)) do
    if string.sub(member, -#ending) == ending then
        worker = string.match(member, "^[^/]+")
    end
end
return {"running", id, record, "", "", worker}
