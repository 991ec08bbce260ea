-- Days of a user in the bitmaps of years that follow each other.
--
-- needs  KEYS, ARGV
-- gives  years_from, year_of, is_set, set_bit, neighbours, count_covered
--
-- A year's bitmap has one bit for each day: those with a sign-in from SIGNED on, and the covered days from COVERED on. A
-- day with both was made up, and one that is only covered is frozen.

local SIGNED, COVERED = 0, 368

local function years_from(first_key, first_argument, start)
    local years = { start = start, finish = start }
    for number = first_key, #KEYS do
        local key, length = KEYS[number], ARGV[first_argument + number - first_key]
        years[#years + 1] = { key = key, first = years.finish, bits = redis.call("GET", key) or "" }
        years.finish = years.finish + length
    end
    return years
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

-- The number of sign-ins beside a day, before it with a step of -1 and after it with 1, up to the first missed day; the
-- last day before that; and whether that is within these years. The days between skipped and day are not missed.
local function neighbours(years, day, step, skipped)
    local number, signed = day + step, 0
    while number >= years.start and number < years.finish do
        if is_set(years, number, SIGNED) then
            signed = signed + 1
        elseif not is_set(years, number, COVERED) and not (number > skipped and number < day) then
            break
        end
        number = number + step
    end
    return signed, number - step, number >= years.start and number < years.finish
end

local function count_covered(years, first, last, with_sign_in)
    local count = 0
    for number = first, last do
        if is_set(years, number, COVERED) and is_set(years, number, SIGNED) == with_sign_in then
            count = count + 1
        end
    end
    return count
end
