-- Which limit lets no job of a lane start now.
-- @keys limits, parked
-- needs  clock
-- gives  limits_of, blocking
local SLACK = 100000  -- us by which a start may be early, so that the starts after a late one are in time
local us, known, of_lane = clock[1] * 1000000 + clock[2], {}, {}

-- A limit is "<jobs that may run> <us between two starts> <as it was written>", with a - for none: that which was set for its
-- name, that which was set for all its values, or that of the code.
local function limit_of(name)
    if known[name] == nil then
        local all = string.gsub(string.gsub(name, "^(group=).*", "%1*"), "(&[^=]+=)[^&]*", "%1*")
        local own, set, code, stored = unpack(redis.call("HMGET", limits, "set " .. name, "set " .. all, "code " .. all, "next " .. name))
        local most, interval = string.match(own or set or code or "", "^([%d-]+) ([%d-]+)")
        local limit = {name = name, most = tonumber(most), interval = tonumber(interval), used = 0, next = 0}
        if limit.most then
            limit.used = redis.call("ZLEXCOUNT", parked, "[run\n" .. name .. "\n", "(run\n" .. name .. "\11")
        end
        if limit.interval then
            -- A start that is too far away is one of another rate, or of a clock that went back.
            limit.next = tonumber(string.match(stored or "", "^%d+$")) or 0
            if limit.next > us + SLACK + limit.interval then limit.next = us + SLACK end
        end
        limit.used_before, limit.next_before = limit.used, limit.next
        known[name] = (limit.most or limit.interval) and limit
    end
    return known[name]
end

local function limits_of(lane)
    if not of_lane[lane] then
        of_lane[lane] = {}
        for name in string.gmatch(lane, "%S+") do
            table.insert(of_lane[lane], limit_of(name) or nil)
        end
    end
    return of_lane[lane]
end

-- The first limit that lets no job of a lane start, and in which us it will; no time if a job has to end first.
local function blocking(lane)
    for _, limit in ipairs(limits_of(lane)) do
        if limit.most and limit.used >= limit.most then
            return limit.name
        elseif limit.interval and limit.next - SLACK > us then
            return limit.name, limit.next - SLACK
        end
    end
end
