-- The one place that says which state a job is in.
-- @keys ready, scheduled, dead, lanes, limits, parked
-- needs  nothing
-- gives  lane_of, awaited_limit, is_parked, state_of
local function lane_of(id)
    local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    return lane, rank
end

-- For which limit a lane waits, "" for none.
local function awaited_limit(lane)
    return string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^%d+ (%S+)") or ""
end

-- A job that waits in its lane for a limit is parked. To callers it is ready.
local function is_parked(id)
    local lane, rank = lane_of(id)
    return lane and redis.call("ZSCORE", parked, "job\n" .. lane .. "\n" .. rank .. "\n" .. id)
end

-- The state of a job that is stored, and when it is due, or died. One that is nowhere else runs.
local function state_of(id)
    if redis.call("ZSCORE", ready, id) or is_parked(id) then
        return "ready"
    end
    local due = redis.call("ZSCORE", scheduled, id)
    if due then
        return "scheduled", due
    end
    local died = redis.call("ZSCORE", dead, id)
    return died and "dead" or "running", died
end
