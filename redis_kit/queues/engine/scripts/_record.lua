-- The record of a job: its head, then its payload. A record with another head is all payload, and numbers out of range are cut to
-- size: a worker then reads the job and says what is wrong. The payload of a job whose result is stored begins with its history: a
-- line "~<enqueued>/<run after>/<backend>", to which each attempt adds " <begun>/<worker>".
-- needs  record_head
-- gives  read_record, uncounted
local function read_record(record)
    local priority, attempts, crashes, due, start = string.match(record, "^(%-?%d+) (%d+) (%d+) (%d+)\n()")
    if not start then
        return 0, 0, 0, 0, record
    end
    priority = math.max(-100, math.min(100, tonumber(priority)))
    return priority, math.min(1e6, attempts), math.min(1e6, crashes), math.min(2 ^ 53, due), string.sub(record, start)
end

-- The record of a job as if its last attempt had not begun, due at `time`, or as before.
local function uncounted(record, time)
    local priority, attempts, crashes, due, payload = read_record(record)
    payload = string.gsub(payload, "^(~[^\n]*) [^ \n]+\n", "%1\n")
    return record_head(priority, math.max(0, attempts - 1), crashes, time or due) .. payload
end
