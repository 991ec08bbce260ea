-- Return for which limit a lane waits, "" for none, and the id of its job that is scheduled until that allows it, or nil.
-- needs  limits
-- gives  awaited_limit
local function awaited_limit(lane)
    local kind, _, second, third = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
    if kind == "waits" then
        return second
    end
    return third or "", kind == "timed" and second or nil
end
