-- Days of a user in the bitmaps of years that follow each other.
--
-- needs  KEYS, ARGV
-- gives  years_from, is_set, set_bit
--
-- A year's bitmap has one bit for each day: those with a sign-in from 0 on, and the covered days from COVERED on. A
-- day with both was made up, and one that is only covered is frozen. SIGNED and COVERED are these beginnings.

local SIGNED, COVERED = 0, 368

local function years_from(first_key, first_argument, start)
    local years = {}
    for number = first_key, #KEYS do
        local length = tonumber(ARGV[first_argument + number - first_key])
        years[#years + 1] = { key = KEYS[number], first = start, bits = redis.call("GET", KEYS[number]) or "" }
        start = start + length
    end
    return years, start
end

local function year_of(years, day)
    for index = #years, 1, -1 do
        if day >= years[index].first then
            return years[index], day - years[index].first
        end
    end
end

local function is_set(years, day, from)
    local year, offset = year_of(years, day)
    local byte = string.byte(year.bits, math.floor((from + offset) / 8) + 1) or 0
    return math.floor(byte / 2 ^ (7 - offset % 8)) % 2 == 1
end

local function set_bit(years, day, from, bit)
    local year, offset = year_of(years, day)
    redis.call("SETBIT", year.key, from + offset, bit)
end
