-- Count what happens in this minute, in a round of 72 hours. A field is "<minute> <done> <failed> <begun> <sum of lateness>
-- <greatest lateness>", in ms; older releases wrote the first three only. A field of an earlier round begins at 0.
-- needs  minutes, now
-- gives  read_minute, count_minute
local function read_minute()
    return redis.call("HGET", minutes, math.floor(now / 60000) % 4320) or ""
end

local function count_minute(field, done_more, failed_more, begun_more, late_more, latest_now)
    local minute = math.floor(now / 60000)
    local at, done, failed, begun, late, latest = string.match(field, "^(%d+) (%d+) (%d+) ?(%d*) ?(%d*) ?(%d*)$")
    local is_this = tonumber(at) == minute
    local function sum(before, more)
        return string.format("%.0f", (is_this and tonumber(before) or 0) + more)
    end
    latest = math.max(is_this and tonumber(latest) or 0, latest_now)
    local numbers = {minute, sum(done, done_more), sum(failed, failed_more), sum(begun, begun_more), sum(late, late_more)}
    redis.call("HSET", minutes, minute % 4320, table.concat(numbers, " ") .. string.format(" %.0f", latest))
    if not is_this then
        redis.call("PEXPIRE", minutes, 72 * 3600 * 1000)
    end
end
