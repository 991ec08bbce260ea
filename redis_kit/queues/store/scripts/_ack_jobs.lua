-- Acknowledge jobs of a worker if their claims still hold: ARGV[first] says how many. Their members of `running` follow,
-- then their ids, then what is to be stored. Returns the numbers of those whose claim was lost, or nil; how many were
-- acknowledged; how many were in this minute; a list, and where the ids of the acknowledged are in it; and, if there is
-- something to store, the record of each by its number, false if there is none. A repeated call for the last 250 jobs, at
-- least, gets the same answer. If a key is of a wrong type, nothing is changed.
-- needs  ARGV, running, jobs, answers, minutes, first_field, count_minute
-- gives  ack_jobs
local function ack_jobs(first)
    local count, list, start, lost, sum = tonumber(ARGV[first]), ARGV, first + 1, nil, nil
    local done, to_store = count, first + 2 * count + 1
    local holds = count > 1 and redis.call("ZMSCORE", running, unpack(ARGV, start, first + count))
    if count == 1 then
        done = redis.call("ZREM", running, ARGV[start])
    end
    local records = ARGV[to_store] and redis.pcall("HMGET", jobs, unpack(ARGV, start + count, to_store - 1))
    for at = 1, holds and count or 0 do
        done = holds[at] and done or done - 1
    end
    if done < count then
        local answered, at_id = {}, start + count
        list, start, lost, holds = {}, 1, {}, holds or {}
        for _, entry in ipairs(redis.call("LRANGE", answers, 0, -1)) do
            answered[entry] = true
        end
        for at = 1, count do
            local member = ARGV[first + at]
            if holds[at] then
                list[#list + 1] = member
            elseif not answered[member] then
                lost[#lost + 1] = at
            end
            if records and not holds[at] then records[at] = nil end
        end
        for at = 1, count do
            if holds[at] then list[#list + 1] = ARGV[at_id + at - 1] end
        end
        lost = #lost > 0 and lost or nil
    end
    if done == 0 then
        return lost, 0
    end

    local last, at_ids = start + done - 1, start + done
    if count > 1 then redis.call("ZREM", running, unpack(list, start, last)) end
    local length = redis.pcall("RPUSH", answers, unpack(list, start, last))
    sum = type(length) == "number" and count_minute(0, done) or length
    local deleted = type(sum) == "number" and redis.pcall("HDEL", jobs, unpack(list, at_ids, last + done)) or sum
    if type(deleted) == "table" then
        for at = start, last do redis.call("ZADD", running, 0, list[at]) end
        if type(length) == "number" then redis.call("LTRIM", answers, 0, -1 - done) end
        if type(sum) == "number" and count_minute(0, -done) == 0 then redis.call("HDEL", minutes, first_field) end
        error(deleted)
    end
    if length > 300 then redis.call("LTRIM", answers, -250, -1) end
    if length == done then redis.call("PEXPIRE", answers, 3600 * 1000) end
    return lost, done, sum, list, at_ids, records
end
