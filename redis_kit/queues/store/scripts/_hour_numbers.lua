-- Return five numbers of an hour since 1970, from those of its minutes.
-- needs  minutes, minute_numbers
-- gives  hour_numbers
local function hour_numbers(hour)
    local fields, sums = {}, {0, 0, 0, 0, 0}
    for minute = 60 * hour, 60 * hour + 59 do
        for what = 0, 2 do fields[#fields + 1] = 4 * minute + what end
    end
    local stored = redis.call("HMGET", minutes, unpack(fields))
    for at = 1, #stored, 3 do
        local done, failed, begun, late, latest = minute_numbers(stored[at], stored[at + 1], stored[at + 2])
        sums = {sums[1] + done, sums[2] + failed, sums[3] + begun, sums[4] + late, math.max(sums[5], latest)}
    end
    return sums
end
