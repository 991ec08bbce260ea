-- Count a crash of a process for a job that it ran. `beside` has a line for each job that it ran, "" if it ran no other. One that
-- was not alone may be innocent: its attempt does not count, and it does not die of it, or of ten times as many: then nobody lets
-- it run alone. One that was alone too often is buried, and its id, the reason, and the first bytes of its body are added to a
-- reply. Returns whether the job is to be ready again.
-- needs  jobs, crashed, now, most, any_unique, write_record, remove_attempt, bury_job, body_start
-- gives  count_crash
local function count_crash(reply, beside, id, priority, attempts, crashes, payload)
    local stored = crashes > 0 and redis.call("HGET", crashed, id) or ""
    local times, before = string.match(stored, "^(%d+)(.*)$")
    times = (tonumber(times) or 0) + (beside == "" and 1 or 0)
    if beside ~= "" then
        attempts, payload = math.max(0, attempts - 1), remove_attempt(payload)
    end
    for _, other in ipairs(redis.call("HRANDFIELD", crashed, 10)) do  -- those of jobs that have ended make room
        if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", crashed, other) end
    end
    redis.call("HSET", crashed, id, string.format("%.0f", times) .. (beside == "" and before or beside))
    redis.call("PEXPIRE", crashed, 30 * 24 * 3600 * 1000)
    write_record(id, priority, attempts, crashes + 1, now, payload)
    if times < most and crashes + 1 < 10 * most then
        return true
    end
    local start = body_start(payload)
    local reason = string.format("poison: %d process%s died in which it ran alone", times, times == 1 and "" or "es")
    if times < most then reason = string.format("poison: %d processes died in which it ran", crashes + 1) end
    bury_job(id, reason, any_unique)
    for _, item in ipairs({id, reason, string.sub(payload, start, start + 511)}) do
        table.insert(reply, item)
    end
end
