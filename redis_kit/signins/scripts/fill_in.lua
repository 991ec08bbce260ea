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
-- @include _years
local state = read_state(KEYS[1])
local start = tonumber(ARGV[2])
-- @check_types active, streaks, members, first, first_was
local years, finish = years_from(7, 13, start)

-- Whether the zone changed, and in the old one the day after the last one has not ended: then the dates between were
-- skipped and not missed.
local function is_next_in_old_zone()
    local offset, name = string.match(state.zone, "^(%S+) (.*)$")
    local changed = name and kind == "sign_in" and ARGV[6] ~= "" and name ~= string.match(ARGV[6], " (.*)$")
    return changed and day > state.last + 1 and math.floor((now + offset) / 86400) + 719163 <= state.last + 1
end

local skipped = is_next_in_old_zone() and state.last or day

local function neighbours(step)
    local number, signed = day + step, 0
    while number >= start and number < finish do
        if is_set(years, number, SIGNED) then
            signed = signed + 1
        elseif not is_set(years, number, COVERED) and not (number > skipped and number < day) then
            break
        end
        number = number + step
    end
    return signed, number - step, number >= start and number < finish
end

local function used()
    local count = 0
    for number = tonumber(ARGV[11]), tonumber(ARGV[12]) do
        if is_set(years, number, COVERED) and is_set(years, number, SIGNED) == (kind == "make_up") then
            count = count + 1
        end
    end
    return count
end

local signed, covered = is_set(years, day, SIGNED), is_set(years, day, COVERED)
local new = not signed and not (kind == "freeze" and covered)
local back, _, is_whole = neighbours(-1)
local forward, last, is_whole_too = neighbours(1)
if not (is_whole and is_whole_too) then
    return "years"
elseif new and kind ~= "sign_in" and used() >= tonumber(ARGV[10]) then
    return "used"
elseif new and kind ~= "freeze" and state.first > day and state.first ~= was then
    return "first " .. state.first
end
local length = back + forward + ((kind == "freeze" and not signed) and 0 or 1)
if not new then
    local repeated = state.token == ARGV[5]
    local before = repeated and state.before or state.longest
    return string.format("%d %d %d %d %d", repeated and 1 or 0, length, state.longest, state.total, before)
end

if kind == "freeze" then
    set_bit(years, day, COVERED, 1)
    state.frozen = math.max(state.frozen, day)
else
    for number = skipped + 1, day - 1 do
        set_bit(years, number, COVERED, 1)
        state.frozen = math.max(state.frozen, number)
    end
    if covered or kind == "make_up" then
        set_bit(years, day, COVERED, kind == "make_up" and 1 or 0)
    end
    set_bit(years, day, SIGNED, 1)
    if state.place < 0 then
        state.place = redis.call("RPUSH", KEYS[4], ARGV[3]) - 1
    end
    redis.call("SETBIT", KEYS[2], state.place, 1)
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
    if state.first == 0 or day < state.first then
        if state.first > 0 then
            redis.call("SETBIT", KEYS[6], state.place, 0)
        end
        redis.call("SETBIT", KEYS[5], state.place, 1)
        redis.call("PEXPIRE", KEYS[5], ARGV[4])
        state.first = day
    end
    state.total = state.total + 1
    state.zone = ARGV[6] ~= "" and ARGV[6] or state.zone
end
state.before, state.token = state.longest, ARGV[5]
state.longest = math.max(state.longest, length)
if length > 0 and last >= state.last then
    state.last, state.streak = last, length
    redis.call("ZADD", KEYS[3], last * 100000 + length, state.place)
end
write_state(KEYS[1], state)
return string.format("1 %d %d %d %d", length, state.longest, state.total, state.before)
