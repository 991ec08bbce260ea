-- The one place that says which state a job is in.
-- @keys ready, scheduled, dead
-- needs  nothing
-- gives  state_of

-- The state of a job that is stored, and when it is due, or died. One that is nowhere else runs.
local function state_of(id)
    if redis.call("ZSCORE", ready, id) then
        return "ready"
    end
    -- @hook on_state(id)
    local due = redis.call("ZSCORE", scheduled, id)
    if due then
        return "scheduled", due
    end
    local died = redis.call("ZSCORE", dead, id)
    return died and "dead" or "running", died
end
