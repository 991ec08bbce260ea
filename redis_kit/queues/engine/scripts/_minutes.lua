-- Count in the field 4 * minute + what: 0 jobs done, 1 attempts failed. (2 has three packed numbers: jobs begun, by how many ms
-- they were late, together, and at most.) Other values count as 0. Returns the sum, or the error of a key of a wrong type.
-- needs  minutes, first_field
-- gives  count_minute, begin_minute
local function count_minute(what, more)
    local sum = redis.pcall("HINCRBY", minutes, first_field + what, more)
    if type(sum) == "table" and not string.find(sum.err, "WRONGTYPE", 1, true) then
        redis.call("HSET", minutes, first_field + what, more)
        return more
    end
    return sum
end

-- Begin a minute: what is counted lasts for 72 hours from now, and some of what is older goes, more than a minute adds.
local function begin_minute()
    redis.call("PEXPIRE", minutes, 72 * 3600 * 1000)
    for _, field in ipairs(redis.call("HRANDFIELD", minutes, 20)) do
        if (tonumber(field) or 0) < first_field - 4 * 4320 then redis.call("HDEL", minutes, field) end
    end
end
