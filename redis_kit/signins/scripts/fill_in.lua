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
-- @include _state
-- @include _year
-- @include _years
-- @include _zone
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
write_state(KEYS[1], zone, last, streak, longest, total, first_day, place, frozen, before, ARGV[5])
return answer(true, length, longest, total, before)
