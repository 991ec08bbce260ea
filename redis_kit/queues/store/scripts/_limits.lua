-- The limits of jobs. The limits of a lane are the words of its name. A limit is "<jobs that may run> <us between two
-- starts> <as it was written>", with a - for none: that which was set for its name, that which was set for all its values,
-- or that of the code. One whose name begins with "worker:" counts the jobs and starts of this worker alone.
-- needs  limits, parked, clock, running, lanes, worker
-- gives  used_here, limit_of, limits_of, note_start, next_start, is_for_others, starts_at, blocking, take_place, write_limits
local SLACK = 100000  -- us by which a start may be early, so that the starts after a late one are in time
local us, known, of_lane, holds, running_here = clock[1] * 1000000 + clock[2], {}, {}, {}, nil
local starts_here = math.huge

-- How many jobs with a limit this worker runs.
local function used_here(name)
    if not running_here then
        running_here = {}
        local ids, members = {}, redis.call("ZRANGEBYLEX", running, "[" .. worker .. "/", "(" .. worker .. "0", "LIMIT", 0, 5000)
        for at, member in ipairs(members) do ids[at] = string.match(member, "^[^/]*/[^/]*/[^/]*/(.*)$") or "" end
        for _, stored in ipairs(#ids > 0 and redis.call("HMGET", lanes, unpack(ids)) or {}) do
            for of_job in string.gmatch(string.match(stored or "", "^%S+ (.*)$") or "", "%S+") do
                running_here[of_job] = (running_here[of_job] or 0) + 1
            end
        end
    end
    return running_here[name] or 0
end

local function limit_of(name)
    if known[name] == nil then
        local all = string.gsub(string.gsub(name, "^(group=).*", "%1*"), "(&[^=]+=)[^&]*", "%1*")
        local own, set, code = unpack(redis.call("HMGET", limits, "set " .. name, "set " .. all, "code " .. all))
        local most, interval = string.match(own or set or code or "", "^([%d-]+) ([%d-]+)")
        local limit = {name = name, most = tonumber(most), interval = tonumber(interval), used = 0, next = 0, coming = 0}
        limit.per_worker = string.sub(name, 1, 7) == "worker:"
        limit.field = "next " .. name .. (limit.per_worker and " " .. worker or "")
        if limit.most and limit.per_worker then
            limit.used = used_here(name)
        elseif limit.most then
            limit.used = redis.call("ZLEXCOUNT", parked, "[run\n" .. name .. "\n", "(run\n" .. name .. "\11")
        end
        if limit.interval then
            -- A start that is too far away is one of another rate, or of a clock that went back.
            local stored = string.match(redis.call("HGET", limits, limit.field) or "", "^%d+$")
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

-- Note in which us this worker may start a job, as far as its own limits allow, while others may start it before.
local function note_start(at)
    starts_here = math.min(starts_here, at)
end

-- The first of these times in ms, nil if there is none.
local function next_start()
    return starts_here < math.huge and math.ceil(starts_here / 1000) or nil
end

-- Whether a lane began to wait because of what this worker runs or started, and other workers may start its jobs.
local function is_for_others()
    for _, limit in pairs(known) do
        if limit and limit.per_worker and limit.waited then return true end
    end
    return false
end

-- In which us a limit allows a start after `more` others, nil if it does so now.
local function starts_at(limit, more)
    local at = (more > 0 and math.max(limit.next, us) + more * limit.interval or limit.next) - SLACK
    return at > us and at or nil
end

-- The first limit that lets no job of a lane start, and in which us it will; no time if a job has to end first, or if other
-- workers may start one before. With `planned`, jobs that got ready in this call count as started.
local function blocking(lane, planned)
    for _, limit in ipairs(limits_of(lane)) do
        local more = planned and limit.coming or 0
        if limit.most and limit.used + more >= limit.most then
            return limit
        end
        local at = limit.interval and starts_at(limit, more)
        if at and limit.per_worker then note_start(at) end
        if at then return limit, not limit.per_worker and at or nil end
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
            any = redis.call("HSET", limits, limit.field, string.format("%.0f", limit.next)) == 1 or any
        end
    end
    for _, field in ipairs(any and redis.call("HRANDFIELD", limits, 5) or {}) do  -- more than are added
        local past = string.sub(field, 1, 5) == "next " and tonumber(redis.call("HGET", limits, field))
        if past and past < us then redis.call("HDEL", limits, field) end
    end
end
