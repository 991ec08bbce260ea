-- Count a crash of a process for a job that it ran. `beside` has a line for each job that it ran, "" if it ran no other. One that
-- was not alone may be innocent: its attempt does not count, and it does not die of it, or of ten times as many: then nobody lets
-- it run alone. Of one that was alone too often the id, the reason, and the first bytes of its body are added to a reply. Returns
-- its record, and the reason if it is to be dead.
-- @keys jobs, crashed
-- needs  most, read_record, record_head, uncounted, now, note_ending
-- gives  count_crash
local function count_crash(reply, beside, id, record)
    if beside ~= "" then record = uncounted(record) end
    local priority, attempts, crashes, _, payload = read_record(record)
    local stored = crashes > 0 and redis.call("HGET", crashed, id) or ""
    local times, before = string.match(stored, "^(%d+)(.*)$")
    times = (tonumber(times) or 0) + (beside == "" and 1 or 0)
    for _, other in ipairs(redis.call("HRANDFIELD", crashed, 10)) do  -- those of jobs that have ended make room
        if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", crashed, other) end
    end
    redis.call("HSET", crashed, id, string.format("%.0f", times) .. (beside == "" and before or beside))
    redis.call("PEXPIRE", crashed, 30 * 24 * 3600 * 1000)
    record = record_head(priority, attempts, crashes + 1, now) .. payload
    if times < most and crashes + 1 < 10 * most then
        return record
    end
    local reason = string.format("poison: %d process%s died in which it ran alone", times, times == 1 and "" or "es")
    if times < most then reason = string.format("poison: %d processes died in which it ran", crashes + 1) end
    local start = string.match(payload, "^~[^\n]*\n()") or 1
    for _, item in ipairs({id, reason, string.sub(payload, start, start + 511)}) do
        table.insert(reply, item)
    end
    note_ending(id, "dead", reason, record)
    return record, reason
end
