-- Tell at a glance that slots are free, though something is stored: only holders, all under this limit, and all fit in
-- with those that have ended. One time in sixteen it says no, so that leases that have ended are removed.
-- needs  weight, micros
-- gives  fits
local function fits(found, holders, limit)
    local first = found == 1 and micros % 16 > 0 and redis.call("ZRANGE", holders, 0, 0)[1] or ""
    return string.match(first, "^%x+ (%d+)$") == limit
        and redis.call("ZCARD", holders) + weight <= tonumber(limit)
end
