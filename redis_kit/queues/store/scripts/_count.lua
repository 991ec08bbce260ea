-- Counts in a ring of 72 hours: a field per minute, begun anew when its turn comes again. A field is "<minute> <done>
-- <failed> <begun> <sum of lateness> <greatest lateness>", in ms; older releases wrote the first three only.
local minute = math.floor(now / 60000)
local at, done, failed, begun, late, latest = string.match(
    redis.call("HGET", minutes, minute % 4320) or "", "^(%d+) (%d+) (%d+) ?(%d*) ?(%d*) ?(%d*)$")
local function count(more_done, more_failed, more_begun, more_late, most_late)
    local known = tonumber(at) == minute
    local function sum(before, more)
        return string.format("%.0f", (known and tonumber(before) or 0) + more)
    end
    latest = math.max(known and tonumber(latest) or 0, most_late)
    local numbers = {minute, sum(done, more_done), sum(failed, more_failed), sum(begun, more_begun), sum(late, more_late)}
    redis.call("HSET", minutes, minute % 4320, table.concat(numbers, " ") .. string.format(" %.0f", latest))
    if not known then
        redis.call("PEXPIRE", minutes, 72 * 3600 * 1000)
    end
end
