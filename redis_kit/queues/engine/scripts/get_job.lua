#!lua flags=no-writes
-- Return one job and its state.
--
-- @keys jobs, ready, scheduled, dead, reasons, running
-- ARGV[1]  id
-- ARGV[2]  limit      how many running jobs are looked through for its worker
-- returns  state, id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or ""; nothing
--          without a job

local id, limit = ARGV[1], tonumber(ARGV[2])
-- @include _state_of
local record = redis.call("HGET", jobs, id)
if not record then
    return {}
end
local state, moment = state_of(id)
if state ~= "running" then
    local reason = state == "dead" and redis.call("HGET", reasons, id)
    -- @hook on_reason(id, state, reason)
    return {state, id, record, moment or "", reason or "", ""}
end
local worker, ending = "", "/" .. id
for _, member in ipairs(redis.call("ZRANGE", running, 0, limit - 1)) do
    if string.sub(member, -#ending) == ending then
        worker = string.match(member, "^[^/]+")
    end
end
return {"running", id, record, "", "", worker}
