-- Counts in a ring of 72 hours: a field per minute, begun anew when its turn comes again.
local minute = math.floor(now / 60000)
local at, done, failed = string.match(redis.call("HGET", minutes, minute % 4320) or "", "^(%d+) (%d+) (%d+)$")
local function count(more_done, more_failed)
    local begun = tonumber(at) == minute
    done, failed = (begun and done or 0) + more_done, (begun and failed or 0) + more_failed
    redis.call("HSET", minutes, minute % 4320, minute .. " " .. done .. " " .. failed)
    if not begun then
        redis.call("PEXPIRE", minutes, 72 * 3600 * 1000)
    end
end
