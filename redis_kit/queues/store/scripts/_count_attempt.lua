-- Count an attempt; returns the record and when it was due. The usual head is not taken apart, as claims must be quick.
-- needs  read_record, record_head
-- gives  add_attempt, count_attempt
local function add_attempt(payload, attempt)
    return string.byte(payload) == 126 and string.gsub(payload, "\n", " " .. attempt .. "\n", 1) or payload
end

local function count_attempt(record, attempt)
    local before, attempts, after, due, payload = string.match(record, "^(%-?%d%d?%d? )(%d%d?)( %d+ )(%d+)\n(.*)$")
    if before then
        return before .. attempts + 1 .. after .. due .. "\n" .. add_attempt(payload, attempt), due
    end
    local priority, counted, crashes, at, other = read_record(record)
    return record_head(priority, counted + 1, crashes, at) .. add_attempt(other, attempt), at
end
