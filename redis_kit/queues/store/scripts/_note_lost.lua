-- Record that a worker ended without signing off, and how many of its jobs were taken; the latest 50 for a day. A program
-- without a supervisor that held no job is not recorded, as it may have ended in order. Its report is JSON.
-- needs  lost, now
-- gives  note_lost
local function note_lost(from, jobs, report)
    local supervisor = string.match(report, "\34supervisor_pid\34: ?(%d+)")
    if jobs == 0 and not supervisor then
        return
    end
    local pid, host = string.match(report, "\34pid\34: ?(%d+)"), string.match(report, "\34host\34: ?\34([^\34]*)")
    local before = tonumber(string.match(redis.call("HGET", lost, from) or "", "^%d+ (%d+) ")) or 0
    local process = (pid or "0") .. " " .. (supervisor or "0") .. " " .. string.sub(host or "?", 1, 255)
    redis.call("HSET", lost, from, string.format("%.0f %.0f ", now, before + jobs) .. process)
    redis.call("PEXPIRE", lost, 24 * 3600 * 1000)
    if redis.call("HLEN", lost) <= 50 then
        return
    end
    local oldest, earliest, all = from, now, redis.call("HGETALL", lost)
    for at = 1, #all, 2 do
        local time = tonumber(string.match(all[at + 1], "^%d+")) or 0
        if time < earliest then oldest, earliest = all[at], time end
    end
    redis.call("HDEL", lost, oldest)
end
