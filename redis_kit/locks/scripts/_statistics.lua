-- Add to the numbers of this minute and of this hour: waits that ended, ms that they took together and at most, those of them
-- that ended without a lease, and leases that were lost. 4320 minutes and 2160 hours are stored, each in place of the one of a
-- cycle before: 24 bytes with the minute or hour since 1970, and its five numbers.
-- The two keys have the tag of `shared`, a key of the same bucket. No call names them, as few calls need them.
-- needs  nothing
-- gives  add_to, count_in_history
local function add_to(ring, size, time, seconds, added)
    local now = math.floor(time / seconds)
    local start = now % size * 24
    local stored = redis.pcall("GETRANGE", ring, start, start + 23)
    if type(stored) == "table" then return end -- a key of a wrong type must not keep callers from their leases
    if stored == "" then
        redis.call("SETRANGE", ring, size * 24 - 1, "\0") -- all at once: one that grows takes twice the memory
    end
    local sums = { struct.unpack(">I4I4I4I4I4I4", #stored == 24 and stored or string.rep("\0", 24)) }
    if sums[1] ~= now then
        sums = { now, 0, 0, 0, 0, 0 }
        redis.call("EXPIRE", ring, size * seconds)
    end
    for place, number in ipairs(added) do
        local sum = place == 3 and math.max(sums[4], number) or sums[place + 1] + number
        sums[place + 1] = math.min(sum, 2 ^ 32 - 1)
    end
    redis.call("SETRANGE", ring, start, struct.pack(">I4I4I4I4I4I4", unpack(sums, 1, 6)))
end

local function count_in_history(shared, waits, ms, longest, timeouts, lost)
    local tag, time = string.match(shared, "^.*:"), redis.call("TIME")[1]
    local added = { waits, ms, longest, timeouts, lost }
    add_to(tag .. "minutes", 72 * 60, time, 60, added)
    add_to(tag .. "hours", 90 * 24, time, 3600, added)
end
