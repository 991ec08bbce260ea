-- Call a function with each minute in which something happened, and its numbers: jobs done, attempts failed, attempts begun, ms by
-- which these were late, together and at most. Other values than numbers count as 0.
-- needs  minutes
-- gives  each_minute
local MOST = 2 ^ 53
local function each_minute(from, to, take)
    for first = from, to, 1000 do  -- a command for each minute would take twice as long
        local fields = {}
        for minute = first, math.min(first + 999, to) do
            for what = 0, 2 do fields[#fields + 1] = 4 * minute + what end
        end
        local stored = redis.call("HMGET", minutes, unpack(fields))
        for at = 1, #fields, 3 do
            local done, failed, packed = stored[at], stored[at + 1], stored[at + 2]
            if done or failed or packed then
                local numbers = {struct.unpack(">I8I8I8", packed and #packed == 24 and packed or string.rep("\0", 24))}
                for place, number in ipairs({tonumber(done or 0) or 0, tonumber(failed or 0) or 0, unpack(numbers, 1, 3)}) do
                    numbers[place] = math.max(0, math.min(MOST, number))
                end
                take(first + (at - 1) / 3, unpack(numbers, 1, 5))
            end
        end
    end
end
