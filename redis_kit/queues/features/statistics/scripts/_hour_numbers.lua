-- Return five numbers of an hour since 1970, from those of its minutes.
-- needs  minutes, minute_numbers
-- gives  hour_numbers
local function hour_numbers(hour)
    local fields, done, failed, begun, late, latest = {}, 0, 0, 0, 0, 0
    for minute = 60 * hour, 60 * hour + 59 do
        for what = 0, 2 do fields[#fields + 1] = 4 * minute + what end
    end
    local stored = redis.call("HMGET", minutes, unpack(fields))
    for at = 1, #stored, 3 do
        if stored[at] or stored[at + 1] or stored[at + 2] then
            local numbers = {minute_numbers(stored[at], stored[at + 1], stored[at + 2])}
            done, failed, begun = done + numbers[1], failed + numbers[2], begun + numbers[3]
            late, latest = late + numbers[4], math.max(latest, numbers[5])
        end
    end
    return {done, failed, begun, late, latest}
end
