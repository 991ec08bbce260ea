#!lua flags=no-writes
-- Return what is stored about a job beyond its state: the result of its call, its unique key, and whether it is cancelled.
--
-- @keys result, jobs, crashed
-- ARGV[1]  id
-- ARGV[2]  errors   how many, at most: those of the latest attempts
-- ARGV[3]  bytes    longest text of a result that is returned; "" takes the place of a longer one
-- returns  its record, or that which it had at its end, "" without one; the result's status, when it ended in ms, value,
--          progress, what cancelled it, and how often, when and why it snoozed, each "" without one; until when it has a unique key, and that key, or "";
--          1 when it is to be cancelled; what is stored about its crashes, or ""; then the number of each attempt that failed and its error, the latest first

local id, most, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- @include _history
local function short(text)
    return text and #text <= bytes and text or ""
end
local stored = redis.call("HMGET", result, "record", "status", "at", "value", "progress", "cancelled", "snoozed")
local record = redis.call("HGET", jobs, id) or short(stored[1])
local reply = {record, "", "", "", "", "", "", "", 0, redis.call("HGET", crashed, id) or ""}
for at = 2, 7 do
    reply[at] = short(stored[at])
end
-- @hook on_details(id, reply)
local attempts = attempts_begun(record)
for number = attempts, math.max(1, attempts - most + 1), -1 do
    local error = short(redis.call("HGET", result, "error" .. number))
    if error ~= "" then
        table.insert(reply, number)
        table.insert(reply, error)
    end
end
return reply
