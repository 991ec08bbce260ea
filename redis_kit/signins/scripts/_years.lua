-- Days of a user in the bitmaps of years that follow each other.
--
-- needs  ARGV, KEYS, join_year, split_year
-- gives  years_from, year_of, is_set, set_bit, write_years, neighbours, count_covered
--
-- A day is one with a sign-in, a covered one, or both. A day with both was made up, and one that is only covered is frozen.

local SIGNED, COVERED = "signed", "covered"

local function years_from(first_key, first_argument, start)
    local years = { start = start, finish = start }
    for number = first_key, #KEYS do
        local key, length = KEYS[number], ARGV[first_argument + number - first_key]
        local signed, covered = split_year(redis.call("GET", key) or "")
        years[#years + 1] = { key = key, first = years.finish, signed = signed, covered = covered }
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

local function is_set(years, day, kind)
    local year, offset = year_of(years, day)
    return bit.band(string.byte(year[kind], math.floor(offset / 8) + 1), 2 ^ (7 - offset % 8)) ~= 0
end

local function set_bit(years, day, kind, value)
    local year, offset = year_of(years, day)
    local index, mask, days = math.floor(offset / 8) + 1, 2 ^ (7 - offset % 8), year[kind]
    local byte = bit.band(string.byte(days, index), bit.bnot(mask)) + value * mask
    year[kind] = string.sub(days, 1, index - 1) .. string.char(byte) .. string.sub(days, index + 1)
    year.is_changed = true
end

local function write_years(years)
    for _, year in ipairs(years) do
        if year.is_changed then
            redis.call("SET", year.key, join_year(year.signed, year.covered))
        end
    end
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
