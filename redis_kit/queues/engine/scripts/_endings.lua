-- Jobs that ended without their worker, which knows the key of the result: a worker that hears of them stores it.
-- @keys endings
-- needs  now
-- gives  note_ending
local function note_ending(id, kind, reason, record)
    if string.match(record, "^[^\n]*\n~") then
        redis.call("HSET", endings, id, kind .. string.format(" %.0f ", now) .. reason .. "\n" .. record)
        redis.call("PEXPIRE", endings, 30 * 24 * 3600 * 1000)
    end
end
