#!lua flags=no-writes
-- Return one job and its state; with `details` also the result of its call, its unique key, and whether it is cancelled.
--
-- @keys jobs, ready, scheduled, dead, reasons, running
-- ARGV[1]  id
-- ARGV[2]  limit      how many running jobs are looked through for its worker
-- ARGV[3]  errors     how many, at most: those of the latest attempts; only with `details`
-- ARGV[4]  bytes      longest text of a result that is returned; "" takes the place of a longer one
-- returns  {state, id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or ""},
--          which is empty without a job. With `details` also its record, or that which it had at its end, "" without one; the
--          result's status, when it ended in ms, value, progress, what cancelled it, and how often, when and why it snoozed, each
--          "" without one; until when it has a unique key, and that key, or ""; 1 when it is to be cancelled; what is stored about
--          its crashes, or ""; then the number of each attempt that failed and its error, the latest first

local id = ARGV[1]
-- @include redis_kit.queues.engine:_state_of
local record, job = redis.call("HGET", jobs, id), {}
if record then
    local state, moment = state_of(id)
    local reason, worker = state == "dead" and redis.call("HGET", reasons, id), ""
    -- @hook on_reason(id, state, reason)
    for _, member in ipairs(state == "running" and redis.call("ZRANGE", running, 0, ARGV[2] - 1) or {}) do
        if string.sub(member, -#id - 1) == "/" .. id then worker = string.match(member, "^[^/]+") end
    end
    job = {state, id, record, moment or "", reason or "", worker}
end
local reply = {}
-- @if details
-- @keys crashed
local most, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
reply = {record or "", "", "", "", "", "", "", "", 0, redis.call("HGET", crashed, id) or ""}
-- @hook on_details(id, reply, most, bytes)
-- @end details
return {job, unpack(reply)}
