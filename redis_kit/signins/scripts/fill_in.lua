#!lua
-- Record a sign-in on any day, make a missed day up, or freeze a day.
--
-- KEYS[1]     user       string: state
-- KEYS[2]     active     bitmap: place -> signed in on the day
-- KEYS[3]     streaks    zset: place -> last day and length of the latest streak
-- KEYS[4]     members    list: users by their place
-- KEYS[5]     first      bitmap: place -> signed in for the first time on the day
-- KEYS[6]     first_was  bitmap: place -> signed in for the first time on the day that is first now
-- KEYS[7...]  years      bitmap: day of the year -> signed in, and covered; of years that follow each other
-- ARGV[1]     day        its number
-- ARGV[2]     start      number of the first day of the first year
-- ARGV[3]     id         of the user
-- ARGV[4]     ttl        time for which active users are stored, ms
-- ARGV[5]     token      of this call
-- ARGV[6]     zone       offset and name; empty if the day was given as a date
-- ARGV[7]     now        seconds since 1970
-- ARGV[8]     was        number of the day of first_was
-- ARGV[9]     kind       sign_in, make_up or freeze
-- ARGV[10]    most       make-ups or freezes of the month
-- ARGV[11]    month      number of the first day of the month
-- ARGV[12]    month_end  number of its last day
-- ARGV[13...]            lengths of the years
-- returns     as sign_in; "used" if there are as many make-ups or freezes as allowed; "years" if the streak around the
--             day extends beyond these years; "first <day>" if first_was is another day. Then nothing was written

local day, kind, was, now = tonumber(ARGV[1]), ARGV[9], tonumber(ARGV[8]), tonumber(ARGV[7])

-- The state of a user: see State in users/base.py. Behind it is the zone of the latest sign-in at a time.
local function read_state(key)
    local known = redis.call("GET", key)
    if not known then
        return 0, 0, 0, 0, 0, -1, 0, 0, "", ""
    end
    local last, streak, longest, total, first, place, frozen, before, token =
        struct.unpack("<I4I4I4I4I4i4I4I4c8", known)
    return last, streak, longest, total, first, place, frozen, before, token, string.sub(known, 41)
end

local function answer(new, streak, longest, total, before)
    return struct.pack("<I4I4I4I4I4", new and 1 or 0, streak, longest, total, before)
end

-- Days of a user in the bitmaps of years that follow each other: 46 bytes of days with a sign-in, and behind them a
-- bitmap of the covered days. Zeros at the end are left out.
--
-- A day is one with a sign-in, a covered one, or both. A day with both was made up, and one that is only covered is frozen.

local SIGNED, COVERED, BYTES = "signed", "covered", 46

local function years_from(first_key, first_argument, start)
    local years = { start = start, finish = start }
    for number = first_key, #KEYS do
        local key, length = KEYS[number], ARGV[first_argument + number - first_key]
        local stored = redis.call("GET", key) or ""
        local whole = stored .. string.rep("\0", 2 * BYTES - #stored)
        local signed, covered = string.sub(whole, 1, BYTES), string.sub(whole, BYTES + 1, 2 * BYTES)
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
            redis.call("SET", year.key, (string.gsub(year.signed .. year.covered, "%z+$", "")))
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

-- Whether the zone changed, and in the old one the day after the last one has not ended at a time in s since 1970. Then
-- the dates between the last one and that of the new zone were skipped and not missed.
local function is_day_after(last, old_zone, zone, now)
    local offset, name = string.match(old_zone, "^(%S+) (.*)$")
    if not name or zone == "" or name == string.match(zone, " (.*)$") then
        return false
    end
    return math.floor((now + offset) / 86400) + 719163 <= last + 1
end
local last, streak, longest, total, first_day, place, frozen, before, token, zone = read_state(KEYS[1])
-- @check_types active, streaks, members, first, first_was
local years = years_from(7, 13, tonumber(ARGV[2]))

local skips = kind == "sign_in" and day > last + 1 and is_day_after(last, zone, ARGV[6], now)
local skipped = skips and last or day

local signed, covered = is_set(years, day, SIGNED), is_set(years, day, COVERED)
local new = not signed and not (kind == "freeze" and covered)
local back, _, is_whole = neighbours(years, day, -1, skipped)
local forward, run_end, is_whole_too = neighbours(years, day, 1, skipped)
if not (is_whole and is_whole_too) then
    return "years"
elseif new and kind ~= "sign_in" and count_covered(years, tonumber(ARGV[11]), tonumber(ARGV[12]), kind == "make_up") >= tonumber(ARGV[10]) then
    return "used"
elseif new and kind ~= "freeze" and first_day > day and first_day ~= was then
    return "first " .. first_day
end
local length = back + forward + ((kind == "freeze" and not signed) and 0 or 1)
if not new then
    local repeated = token == ARGV[5]
    return answer(repeated, length, longest, total, repeated and before or longest)
end

if kind == "freeze" then
    set_bit(years, day, COVERED, 1)
    frozen = math.max(frozen, day)
else
    for number = skipped + 1, day - 1 do
        set_bit(years, number, COVERED, 1)
        frozen = math.max(frozen, number)
    end
    if covered or kind == "make_up" then
        set_bit(years, day, COVERED, kind == "make_up" and 1 or 0)
    end
    set_bit(years, day, SIGNED, 1)
    if place < 0 then
        place = redis.call("RPUSH", KEYS[4], ARGV[3]) - 1
    end
    redis.call("SETBIT", KEYS[2], place, 1)
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
    if first_day == 0 or day < first_day then
        if first_day > 0 then
            redis.call("SETBIT", KEYS[6], place, 0)
        end
        redis.call("SETBIT", KEYS[5], place, 1)
        redis.call("PEXPIRE", KEYS[5], ARGV[4])
        first_day = day
    end
    total = total + 1
    zone = ARGV[6] ~= "" and ARGV[6] or zone
end
write_years(years)
before, longest = longest, math.max(longest, length)
if length > 0 and run_end >= last then
    last, streak = run_end, length
    redis.call("ZADD", KEYS[3], last * 100000 + length, place)
end
local state = struct.pack("<I4I4I4I4I4i4I4I4c8", last, streak, longest, total, first_day, place, frozen, before, ARGV[5])
redis.call("SET", KEYS[1], state .. zone)
return answer(true, length, longest, total, before)
