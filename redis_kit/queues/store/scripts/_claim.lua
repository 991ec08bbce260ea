-- Gives ready jobs to the worker, and those that it claimed before with the same call. Returns how many are new, and
-- whether any are left; then how many jobs began, and how late: the sum and the greatest, in ms. One whose time makes no
-- sense is not among them.
local function claim_jobs()
    local again = redis.call("ZRANGEBYLEX", running, "[" .. mine .. ".", "(" .. mine .. "/")
    -- A call that was repeated, or whose jobs have ended, may still come in late: then nobody waits for its answer.
    local answers = redis.call("HGET", settled, worker) or ""
    if #again == 0 and string.find(answers, " " .. claim .. ".", 1, true) then
        limit = 0
    elseif ARGV[6] == "1" then
        redis.call("HSET", settled, worker, string.sub(answers .. " " .. claim .. ".0:0", -4096))
    end
    -- One more than asked for, to know whether any is left.
    local first = (#again > 0 or is_paused) and {} or redis.call("ZRANGE", ready, 0, limit, "WITHSCORES")
    local ids, members, written, begun, late, latest = {}, {}, {}, 0, 0, 0
    for at = 1, math.min(#first, 2 * limit), 2 do
        ids[#ids + 1] = first[at]
    end
    local records = #ids > 0 and redis.call("HMGET", jobs, unpack(ids)) or {}
    renew(0.95)
    for at, record in ipairs(records) do
        if record then
            local due
            record, due = attempted(record, attempt)
            local its = now - due
            if its > 0 and its < now then
                late, latest = late + its, its > latest and its or latest
            end
            begun = its < now and begun + 1 or begun
            members[#members + 1], members[#members + 2] = 0, mine .. "." .. at .. "/" .. first[2 * at] .. "/" .. ids[at]
            written[#written + 1], written[#written + 2] = ids[at], record
            give(at, first[2 * at], ids[at], record)
        end
    end
    if #members > 0 then
        redis.call("ZADD", running, unpack(members))
        redis.call("HSET", jobs, unpack(written))
    end
    if #ids > 0 then
        redis.call("ZREM", ready, unpack(ids))
    end
    for _, member in ipairs(again) do
        local number, place, id = string.match(member, "^[^/]+/[^/]+%.(%d+)/([^/]+)/(.*)$")
        local record = id and redis.call("HGET", jobs, id)
        if record then
            give(number, place, id, record)
        end
    end
    local more = #first > 2 * limit or #again > 0 and not is_paused and redis.call("ZCARD", ready) > 0
    return #ids, more, begun, late, latest
end
