-- The place of a job among the ready ones. One that has a lane comes before those without one, among the heads of lanes: the next
-- claim finds it there, and it gets its place in its lane.
-- needs  lanes, place_of
-- gives  ready_place
local function ready_place(id, priority, turn)
    local in_lane = redis.call("HEXISTS", lanes, id) == 1
    return string.format("%.0f", place_of(priority, turn) - (in_lane and 2 ^ 43 or 0))
end
