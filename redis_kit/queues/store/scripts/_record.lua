-- The record of a job: its head, then its payload. A record with another head is all payload, and numbers out of range
-- are cut to size: a worker then reads the job and says what is wrong.
-- needs  jobs, record_head
-- gives  read_record, write_record
local function read_record(record)
    local priority, attempts, crashes, due, start = string.match(record, "^(%-?%d+) (%d+) (%d+) (%d+)\n()")
    if not start then
        return 0, 0, 0, 0, record
    end
    priority = math.max(-100, math.min(100, tonumber(priority)))
    return priority, math.min(1e6, attempts), math.min(1e6, crashes), math.min(2 ^ 53, due), string.sub(record, start)
end

local function write_record(id, priority, attempts, crashes, due, payload)
    redis.call("HSET", jobs, id, record_head(priority, attempts, crashes, due) .. payload)
    return true
end
