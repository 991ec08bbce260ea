-- Jobs that ended without their worker.
-- @keys jobs, cancels
-- needs  now, move
-- gives  note_ending, end_cancelled, is_cancelled
local function note_ending(id, kind, reason, record)
    -- @hook on_lost(id, kind, reason, record)
end

local function is_cancelled(id)
    return redis.call("HEXISTS", cancels, id) == 1
end

-- A running job that was cancelled ends. Returns whether a worker is to wake up.
local function end_cancelled(id, member, record)
    note_ending(id, "cancelled", "", record)
    return move(id, "running", "gone", {member = member})
end
