-- Claim ready jobs for the worker, at most `limit`, and those again that it claimed before with the same call. `give` is
-- called with the number in the claim, the place, the id and the record of each. Returns how many are new, whether any
-- are left, how many jobs began, and how late these were: the sum and the greatest, in ms. A job whose time makes no
-- sense is not counted as begun.
-- needs  worker, claim, now, running, settled, ready, jobs, count_attempt, renew_lease
-- gives  claim_jobs
local function claim_jobs(limit, repeated, is_paused, ends, give)
    local owner, attempt = worker .. "/" .. claim, string.format("%.0f/", now) .. worker
    local again = redis.call("ZRANGEBYLEX", running, "[" .. owner .. ".", "(" .. owner .. "/")
    -- A call that was repeated, or whose jobs have ended, may still come in late: then nobody waits for its answer.
    local answers = redis.call("HGET", settled, worker) or ""
    if #again == 0 and string.find(answers, " " .. claim .. ".", 1, true) then
        limit = 0
    elseif repeated then
        redis.call("HSET", settled, worker, string.sub(answers .. " " .. claim .. ".0:0", -4096))
    end
    -- One more than asked for, to know whether any is left.
    local first = (#again > 0 or is_paused) and {} or redis.call("ZRANGE", ready, 0, limit, "WITHSCORES")
    local ids, members, written, begun, late, latest = {}, {}, {}, 0, 0, 0
    for at = 1, math.min(#first, 2 * limit), 2 do
        ids[#ids + 1] = first[at]
    end
    local records = #ids > 0 and redis.call("HMGET", jobs, unpack(ids)) or {}
    renew_lease(ends, 0.95)
    for at, record in ipairs(records) do
        if record then
            local due
            record, due = count_attempt(record, attempt)
            local lateness = now - due
            if lateness > 0 and lateness < now then
                late, latest = late + lateness, lateness > latest and lateness or latest
            end
            begun = lateness < now and begun + 1 or begun
            local place = first[2 * at]
            members[#members + 1], members[#members + 2] = 0, owner .. "." .. at .. "/" .. place .. "/" .. ids[at]
            written[#written + 1], written[#written + 2] = ids[at], record
            give(at, place, ids[at], record)
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
