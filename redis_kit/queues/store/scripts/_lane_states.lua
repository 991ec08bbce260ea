-- The states of lanes, each read once and written once; see _lanes.
-- needs  limits
-- gives  state_of, set_state, write_states
local states, changed = {}, {}

local function state_of(lane)
    if states[lane] == nil then
        local kind, rank, id, limit = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
        states[lane] = kind == "waits" and {kind = kind, turn = rank, limit = id} or kind and
            {kind = kind, rank = rank, id = id, limit = limit} or false
    end
    return states[lane]
end

local function set_state(lane, state)
    states[lane], changed[lane] = state, true
end

local function write_states()
    for lane in pairs(changed) do
        local state = states[lane]
        if not state then
            redis.call("HDEL", limits, "lane " .. lane)
        elseif state.kind == "waits" then
            redis.call("HSET", limits, "lane " .. lane, "waits " .. state.turn .. " " .. state.limit)
        else
            redis.call("HSET", limits, "lane " .. lane, state.kind .. " " .. state.rank .. " " .. state.id .. " " .. state.limit)
        end
    end
end
