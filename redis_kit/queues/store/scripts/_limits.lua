-- The limits of jobs. The limits of a lane are the words of its name. A limit is "<jobs that may run> <us between two
-- starts> <as it was written>", with a - for none: that which was set for its name, that which was set for all its values,
-- or that of the code.
-- needs  limits, parked, clock
-- gives  limit_of, limits_of, starts_at, blocking, take_place, write_limits
local SLACK = 100000  -- us by which a start may be early, so that the starts after a late one are in time
local us, known, of_lane, holds = clock[1] * 1000000 + clock[2], {}, {}, {}

local function limit_of(name)
    if known[name] == nil then
        local all = string.gsub(string.gsub(name, "^(group=).*", "%1*"), "(&[^=]+=)[^&]*", "%1*")
        local own, set, code = unpack(redis.call("HMGET", limits, "set " .. name, "set " .. all, "code " .. all))
        local most, interval = string.match(own or set or code or "", "^([%d-]+) ([%d-]+)")
        local limit = {name = name, most = tonumber(most), interval = tonumber(interval), used = 0, next = 0, coming = 0}
        if limit.most then
            limit.used = redis.call("ZLEXCOUNT", parked, "[run\n" .. name .. "\n", "(run\n" .. name .. "\11")
        end
        if limit.interval then
            -- A start that is too far away is one of another rate, or of a clock that went back.
            local stored = string.match(redis.call("HGET", limits, "next " .. name) or "", "^%d+$")
            limit.next = tonumber(stored) or 0
            if limit.next > us + SLACK + limit.interval then limit.next = us + SLACK end
        end
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

-- In which us a limit allows a start after `more` others, nil if it does so now.
local function starts_at(limit, more)
    local at = (more > 0 and math.max(limit.next, us) + more * limit.interval or limit.next) - SLACK
    return at > us and at or nil
end

-- The first limit that lets no job of a lane start, and in which us it will; no time if a job has to end first. With `planned`, jobs that got ready in this call count as started.
local function blocking(lane, planned)
    for _, limit in ipairs(limits_of(lane)) do
        local more = planned and limit.coming or 0
        if limit.most and limit.used + more >= limit.most then
            return limit
        end
        local at = limit.interval and starts_at(limit, more)
        if at then return limit, at end
    end
end

local function take_place(lane, id)
    for _, limit in ipairs(limits_of(lane)) do
        holds[#holds + 1], holds[#holds + 2] = 0, "run\n" .. limit.name .. "\n" .. id
        limit.used, limit.taken = limit.used + 1, true
        limit.next = limit.interval and math.max(limit.next, us) + limit.interval
    end
end

local function write_limits()
    if #holds > 0 then redis.call("ZADD", parked, unpack(holds)) end
    local any
    for _, limit in pairs(known) do
        if limit and limit.taken and limit.interval then
            any = redis.call("HSET", limits, "next " .. limit.name, string.format("%.0f", limit.next)) == 1 or any
        end
    end
    for _, field in ipairs(any and redis.call("HRANDFIELD", limits, 5) or {}) do  -- more than are added
        local past = string.sub(field, 1, 5) == "next " and tonumber(redis.call("HGET", limits, field))
        if past and past < us then redis.call("HDEL", limits, field) end
    end
end
