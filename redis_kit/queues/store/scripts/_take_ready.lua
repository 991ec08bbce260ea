-- Claim ready jobs, at most `limit`, or those that were chosen, and add them to a reply. Returns how many are no longer ready,
-- and whether they are the first that began in this minute. If a key is of a wrong type, nothing is changed.
-- needs  ready, running, jobs, minutes, first_field, now
-- gives  take_ready
local function take_ready(limit, worker, owner, reply, chosen)
    local USUAL = "^(%-?%d+ )(%d+)() %d+ (%d+)\n()"
    local counted, attempt = redis.call("HGET", minutes, first_field + 2), nil
    local taken, ids, members, written = chosen or redis.call("ZPOPMIN", ready, limit), {""}, {0, ""}, {"", ""}
    local size, begun, late, latest, claimed = 0, 0, 0, 0, #taken / 2
    for at = 1, claimed do
        ids[at] = taken[2 * at - 1]
    end
    local records = redis.pcall("HMGET", jobs, unpack(ids))
    for at = 1, records.err and 0 or claimed do
        local id, place, record = ids[at], taken[2 * at], records[at]
        if record then
            local priority, attempts, middle, due, start = string.match(record, USUAL)
            if not priority or #priority > 5 or #attempts > 7 then
                -- As in _record: numbers out of range are cut to size, and a record with another head is all payload.
                local one, two, three, four, payload = string.match(record, "^(%-?%d+) (%d+) (%d+) (%d+)\n(.*)$")
                one, two = math.max(-100, math.min(100, one or 0)), math.min(1e6, two or 0)
                three, four = math.min(1e6, three or 0), math.min(2 ^ 53, four or 0)
                record = string.format("%.0f %.0f %.0f %.0f\n", one, two, three, four) .. (payload or record)
                priority, attempts, middle, due, start = string.match(record, USUAL)
            end
            local history = string.byte(record, start) == 126 and string.find(record, "\n", start, true)
            if history then
                attempt = attempt or string.format(" %.0f/", now) .. worker
                record = string.sub(record, 1, history - 1) .. attempt .. string.sub(record, history)
            end
            record = priority .. (attempts == "0" and "1" or attempts + 1) .. string.sub(record, middle)
            local lateness = now - due
            if lateness < now then  -- else its time makes no sense
                begun, late = begun + 1, lateness > 0 and late + lateness or late
                latest = lateness > latest and lateness or latest
            end
            members[size + 1], members[size + 2] = 0, owner .. "/" .. place .. "/" .. id
            written[size + 1], written[size + 2] = id, record
            reply[2 * size + 2], reply[2 * size + 3] = struct.pack(">BII", #place, #id, #record), place
            reply[2 * size + 4], reply[2 * size + 5] = id, record
            size = size + 2
        end
    end
    local added = records.err and records or size == 0 or redis.pcall("ZADD", running, unpack(members))
    if type(added) == "table" then
        for at = 1, claimed do redis.call("ZADD", ready, taken[2 * at], ids[at]) end
        error(added)
    end
    if size > 0 then redis.call("HSET", jobs, unpack(written)) end
    if begun > 0 then
        local before = counted and #counted == 24 and counted or string.rep("\0", 24)
        local others, sum, greatest = struct.unpack(">I8I8I8", before)
        latest = greatest > latest and greatest or latest
        redis.call("HSET", minutes, first_field + 2, struct.pack(">I8I8I8", others + begun, sum + late, latest))
    end
    return claimed, begun > 0 and not counted
end
