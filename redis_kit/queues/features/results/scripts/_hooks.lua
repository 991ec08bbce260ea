-- What scripts do about results, each part at a hook of theirs.
-- @on on_check
-- @if endings
-- @keys endings
-- @check_types endings
-- @end endings
-- @on on_new|on_requeue
-- @keys endings
redis.call("HDEL", endings, id)
-- @on on_lost
-- Jobs that ended without their worker, which knows the key of the result: a worker that hears of them stores it.
-- @keys endings
if string.match(record, "^[^\n]*\n~") then
    redis.call("HSET", endings, id, kind .. string.format(" %.0f ", now) .. reason .. "\n" .. record)
    redis.call("PEXPIRE", endings, 30 * 24 * 3600 * 1000)
end
-- @on on_report
-- @keys endings
unrecorded = redis.call("HLEN", endings)
-- @on on_cancel
-- @keys result, finished
-- @check_types result, finished
-- @on on_cancelled
-- @keys result, finished
if string.match(record, "^[^\n]*\n~") then
-- @include _store_result
    store_result(result, finished, ttl_ms, redis.call("HGET", result, "waiting"), "FAILED", record, "cancelled", error)
end
-- @on on_attempt
-- @if results
-- Store how an attempt ended. Where the key is of a wrong type nothing is stored, or the job would not end until that is gone.
-- @keys results...
local result, finished = KEYS[results + 2 * number], KEYS[results + 2 * number + 1]
local waiting = job.ttl_ms ~= "0" and redis.pcall("HGET", result, "waiting")
if job.ttl_ms ~= "0" and type(waiting) ~= "table" then
    local _, begun = string.gsub(string.match(job.record, "^[^\n]*\n(~[^\n]*)\n") or "", " ", "")
    if state == "dead" or state == "gone" then
-- @include _store_result
        waiting = type(redis.pcall("LLEN", finished)) == "number" and waiting
        local name = state == "gone" and "cancelled" or "error" .. begun
        store_result(result, finished, job.ttl_ms, waiting, "FAILED", job.record, name, job.error)
    elseif kind == "retry" then
        redis.call("HSET", result, "error" .. begun, job.error)
        redis.call("PEXPIRE", result, job.ttl_ms)
    elseif kind == "snooze" then
        local times = (tonumber(string.match(redis.call("HGET", result, "snoozed") or "", "^%d+")) or 0) + 1
        redis.call("HSET", result, "snoozed", string.format("%.0f %.0f ", times, now) .. job.reason)
        redis.call("PEXPIRE", result, job.ttl_ms)
    end
end
-- @end results
-- @on on_done
-- Store the results of jobs that are done: from ARGV[to_store] on the number of each, the result, and the ms to store it. One whose key is
-- of a wrong type is not stored, or no job would end until that is gone. The number 0 stands for the stream of done jobs: then
-- lines about the jobs follow, and how many jobs the stream keeps.
-- @keys results...
if records then
-- @include _store_result
    for at = to_store, #ARGV, 3 do
        local key = results + (at - to_store) / 3 * 2
        local result, finished, record = KEYS[key], KEYS[key + 1], records[tonumber(ARGV[at])]
        if ARGV[at] == "0" then
            local number = 0
            for line in string.gmatch(ARGV[at + 1], "([^\n]*)\n") do  -- empty ones are of jobs that are not noted
                number = number + 1
                if line ~= "" and records[number] ~= nil then
                    redis.pcall("XADD", result, "MAXLEN", "~", ARGV[at + 2], "*", "worker", worker, "job", line)
                end
            end
        elseif record ~= nil then
            local waiting = redis.pcall("HGET", result, "waiting")
            if type(waiting) ~= "table" then
                local callers = waiting and type(redis.pcall("LLEN", finished)) == "number" and waiting
                store_result(result, finished, ARGV[at + 2], callers, "SUCCESSFUL", record or "", "value", ARGV[at + 1])
            end
        end
    end
end
-- @on on_details
-- @keys result
local function short(text)
    return text and #text <= bytes and text or ""
end
local stored = redis.call("HMGET", result, "status", "at", "value", "progress", "cancelled", "snoozed", "record")
for at = 1, 6 do reply[1 + at] = short(stored[at]) end
if reply[1] == "" then reply[1] = short(stored[7]) end
local _, attempts = string.gsub(string.match(reply[1], "^[^\n]*\n(~[^\n]*)\n") or "", " ", "")
for number = attempts, math.max(1, attempts - most + 1), -1 do
    local error = short(redis.call("HGET", result, "error" .. number))
    if error ~= "" then reply[#reply + 1], reply[#reply + 2] = number, error end
end
