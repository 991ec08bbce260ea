-- Note that a caller got its lease after a wait: for the list of the names with the longest waits of one day.
-- Short waits are frequent, so each sixteenth of them stands for all; the fence decides which one.
-- needs  nothing
-- gives  note_wait
local function note_wait(waited, waits, member, ms, fence)
    local share = ms < 50 and 16 or 1
    if fence % share ~= 0 then
        return
    end
    local amounts = { [waited] = math.min(math.max(ms, 0), 86400000) * share, [waits] = share }
    for key, amount in pairs(amounts) do
        redis.call("ZINCRBY", key, amount, member)
        redis.call("ZREMRANGEBYRANK", key, 0, -201)
        redis.call("EXPIRE", key, 86400, "NX")
    end
end
