-- Add to five numbers of this minute, which last for 72 hours, and of this hour, which last for 90 days: waits that ended, ms
-- that they took together and at most, those of them that ended without a lease, and leases that were lost.
-- The two keys have the tag of `shared`, a key of the same bucket. No call names them, as few calls need them.
-- needs  nothing
-- gives  add_to, count_in_history
local function add_to(numbers, seconds, kept, added)
    local now = math.floor(redis.call("TIME")[1] / seconds)
    local stored = redis.pcall("HGET", numbers, now)
    if type(stored) == "table" then return end -- a key of a wrong type must not keep callers from their leases
    local sums = { string.match(stored or "", "^(%d+) (%d+) (%d+) (%d+) (%d+)$") }
    for place, number in ipairs(added) do
        sums[place] = place == 3 and math.max(sums[3] or 0, number) or (sums[place] or 0) + number
    end
    if redis.call("HSET", numbers, now, string.format("%.0f %.0f %.0f %.0f %.0f", unpack(sums))) == 0 then return end

    -- A new entry. Each removes some of the old ones, more than one in the long run.
    redis.call("EXPIRE", numbers, seconds * kept)
    local old = {}
    for _, field in ipairs(redis.call("HRANDFIELD", numbers, 20)) do
        if math.abs((tonumber(field) or 0) - now) >= kept then old[#old + 1] = field end
    end
    if #old > 0 then redis.call("HDEL", numbers, unpack(old)) end
end

local function count_in_history(shared, waits, ms, longest, timeouts, lost)
    local tag, added = string.match(shared, "^.*:"), { waits, ms, longest, timeouts, lost }
    add_to(tag .. "minutes", 60, 72 * 60, added)
    add_to(tag .. "hours", 3600, 90 * 24, added)
end
