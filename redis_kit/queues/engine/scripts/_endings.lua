-- Jobs that ended without their worker, which knows the key of the result: a worker that hears of them stores it.
-- @keys endings, jobs, cancels
-- needs  now, move
-- gives  note_ending, end_cancelled, is_cancelled
local function note_ending(id, kind, reason, record)
    if string.match(record, "^[^\n]*\n~") then
        redis.call("HSET", endings, id, kind .. string.format(" %.0f ", now) .. reason .. "\n" .. record)
        redis.call("PEXPIRE", endings, 30 * 24 * 3600 * 1000)
    end
end

local function is_cancelled(id)
    return redis.call("HEXISTS", cancels, id) == 1
end

-- A running job that was cancelled ends. Returns whether a worker is to wake up.
local function end_cancelled(id, member, record)
    note_ending(id, "cancelled", "", record)
    return move(id, "running", "gone", {member = member})
end
