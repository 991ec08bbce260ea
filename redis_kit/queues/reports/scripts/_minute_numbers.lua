-- Return five numbers of a minute, from what is stored about it: jobs done, attempts failed, attempts begun, ms by which
-- these were late, together and at most. Other values count as 0.
-- needs  nothing
-- gives  minute_numbers
local MOST = 2 ^ 53
local function minute_numbers(done, failed, packed)
    if not (done or failed or packed) then
        return 0, 0, 0, 0, 0
    end
    local numbers = {struct.unpack(">I8I8I8", packed and #packed == 24 and packed or string.rep("\0", 24))}
    for at, number in ipairs({tonumber(done or 0) or 0, tonumber(failed or 0) or 0, unpack(numbers, 1, 3)}) do
        numbers[at] = math.max(0, math.min(MOST, number))
    end
    return unpack(numbers, 1, 5)
end
