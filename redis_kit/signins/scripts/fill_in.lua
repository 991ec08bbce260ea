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

local FIELDS, ZONE = "<I4I4I4I4I4i4I4I4c8", 41
local day, kind, was, now = tonumber(ARGV[1]), ARGV[9], tonumber(ARGV[8]), tonumber(ARGV[7])

-- The state of a user: see State in users.py. Behind it is the zone of the latest sign-in at a time.
local last, streak, longest, total, first_day, place, frozen, before, token = 0, 0, 0, 0, 0, -1, 0, 0, ""
local known = redis.call("GET", KEYS[1]) or ""
if known ~= "" then
    last, streak, longest, total, first_day, place, frozen, before, token = struct.unpack(FIELDS, known)
end
local zone = string.sub(known, ZONE)
-- @check_types active, streaks, members, first, first_was

-- A year has 46 bytes of days with a sign-in, and behind them a bitmap of the covered days. A day with both was made up,
-- and one that is only covered is frozen.
local SIGNED, COVERED = 0, 46
local years = { start = tonumber(ARGV[2]), finish = tonumber(ARGV[2]) }
for number = 7, #KEYS do
    years[#years + 1] = { key = KEYS[number], first = years.finish, days = redis.call("GET", KEYS[number]) or "" }
    years.finish = years.finish + ARGV[number + 6]
end

local function year_of(number)
    for index = #years, 1, -1 do
        if number >= years[index].first then
            return years[index], number - years[index].first
        end
    end
end

local function is_set(number, bitmap)
    local year, offset = year_of(number)
    return bit.band(string.byte(year.days, bitmap + math.floor(offset / 8) + 1) or 0, 2 ^ (7 - offset % 8)) ~= 0
end

local function set_bit(number, bitmap, value)
    local year, offset = year_of(number)
    redis.call("SETBIT", year.key, 8 * bitmap + offset, value)
end

-- Whether the zone changed, and in the old one the day after the last one has not ended at this time. Then the dates
-- between the last one and that of the new zone were skipped and not missed.
local function is_day_after()
    local offset, name = string.match(zone, "^(%S+) (.*)$")
    if not name or ARGV[6] == "" or name == string.match(ARGV[6], " (.*)$") then
        return false
    end
    return math.floor((now + offset) / 86400) + 719163 <= last + 1
end
local skipped = kind == "sign_in" and day > last + 1 and is_day_after() and last or day

-- The number of sign-ins beside the day, before it with a step of -1 and after it with 1, up to the first missed day; the
-- last day before that; and whether that is within these years.
local function neighbours(step)
    local number, signed = day + step, 0
    while number >= years.start and number < years.finish do
        if is_set(number, SIGNED) then
            signed = signed + 1
        elseif not is_set(number, COVERED) and not (number > skipped and number < day) then
            break
        end
        number = number + step
    end
    return signed, number - step, number >= years.start and number < years.finish
end

local function used_in_month()
    local count = 0
    for number = tonumber(ARGV[11]), tonumber(ARGV[12]) do
        if is_set(number, COVERED) and is_set(number, SIGNED) == (kind == "make_up") then
            count = count + 1
        end
    end
    return count
end

local function answer(new, length, before)
    return struct.pack("<I4I4I4I4I4", new and 1 or 0, length, longest, total, before)
end

local signed, covered = is_set(day, SIGNED), is_set(day, COVERED)
local new = not signed and not (kind == "freeze" and covered)
local back, _, is_whole = neighbours(-1)
local forward, run_end, is_whole_too = neighbours(1)
if not (is_whole and is_whole_too) then
    return "years"
elseif new and kind ~= "sign_in" and used_in_month() >= tonumber(ARGV[10]) then
    return "used"
elseif new and kind ~= "freeze" and first_day > day and first_day ~= was then
    return "first " .. first_day
end
local length = back + forward + ((kind == "freeze" and not signed) and 0 or 1)
if not new then
    local repeated = token == ARGV[5]
    return answer(repeated, length, repeated and before or longest)
end

for number = skipped + 1, day - 1 do
    set_bit(number, COVERED, 1)
    frozen = math.max(frozen, number)
end
if kind == "freeze" then
    set_bit(day, COVERED, 1)
    frozen = math.max(frozen, day)
else
    if covered or kind == "make_up" then
        set_bit(day, COVERED, kind == "make_up" and 1 or 0)
    end
    set_bit(day, SIGNED, 1)
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
before, longest = longest, math.max(longest, length)
if length > 0 and run_end >= last then
    last, streak = run_end, length
    redis.call("ZADD", KEYS[3], last * 100000 + length, place)
end
local state = struct.pack(FIELDS, last, streak, longest, total, first_day, place, frozen, before, ARGV[5])
redis.call("SET", KEYS[1], state .. zone)
return answer(true, length, before)
