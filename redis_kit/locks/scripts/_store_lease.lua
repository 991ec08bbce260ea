-- Store what a lease is, and return its fence: the new one, or the one that this very attempt has from before. Seconds and
-- microseconds are stored apart, since the clock gives them so.
-- needs  own, about, clock, micros, ends
-- gives  store_lease
local function store_lease(is_new, fence)
    local seconds, rest = clock[1], clock[2]
    if not is_new or fence ~= micros then
        local before = not is_new and redis.call("GET", own) or ""
        seconds, rest = string.match(before, "^(%d+) (%d+) ")
        seconds, rest = seconds or math.floor(fence / 1000000), rest or fence % 1000000
        fence = seconds * 1000000 + rest
    end
    redis.call("SET", own, seconds .. " " .. rest .. " " .. about, "PXAT", ends - 1)
    return fence
end
