-- A record is "<priority> <attempts> <crashes> <due>\n<payload>". One with another head is all payload, and numbers
-- that make no sense are cut to size: a worker then reads it and says what is wrong.

local function read(record)
    local priority, attempts, crashes, due, start = string.match(record, "^(%-?%d+) (%d+) (%d+) (%d+)\n()")
    if not start then
        return 0, 0, 0, 0, record
    end
    priority = math.max(-100, math.min(100, tonumber(priority)))
    return priority, math.min(1e6, attempts), math.min(1e6, crashes), math.min(2 ^ 53, due), string.sub(record, start)
end

local function write(id, priority, attempts, crashes, due, payload)
    local record = string.format("%.0f %.0f %.0f %.0f\n", priority, attempts, crashes, due) .. payload
    redis.call("HSET", jobs, id, record)
    return record
end

-- A job whose result is stored begins with a line that tells of each attempt when it began and whose it was.
local function told(payload, attempt)
    return string.byte(payload) == 126 and string.gsub(payload, "\n", " " .. attempt .. "\n", 1) or payload
end

local function untold(payload)
    return (string.gsub(payload, "^(~[^\n]*) [^ \n]+\n", "%1\n"))
end

-- Counts an attempt; returns the record and when it was due. The usual head is not taken apart, as claims are to be quick.
local function attempted(record, attempt)
    local before, attempts, after, due, payload = string.match(record, "^(%-?%d%d?%d? )(%d%d?)( %d+ )(%d+)\n(.*)$")
    if before then
        return before .. attempts + 1 .. after .. due .. "\n" .. told(payload, attempt), due
    end
    local priority, counted, crashes, at, other = read(record)
    local head = string.format("%.0f %.0f %.0f %.0f\n", priority, counted + 1, crashes, at)
    return head .. told(other, attempt), at
end
