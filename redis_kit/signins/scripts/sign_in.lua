#!lua
-- Record a sign-in on a day after all earlier ones of the user.
--
-- KEYS[1]  user     string: state
-- KEYS[2]  active   bitmap: place -> signed in on the day
-- KEYS[3]  streaks  zset: place -> last day and length of the latest streak
-- KEYS[4]  year     bitmap: day of the year -> signed in
-- KEYS[5]  members  list: users by their place
-- KEYS[6]  first    bitmap: place -> signed in for the first time on the day
-- ARGV[1]  day      its number
-- ARGV[2]  offset   of the day in its year
-- ARGV[3]  id       of the user
-- ARGV[4]  ttl      time for which active users are stored, ms
-- ARGV[5]  token    of this call
-- ARGV[6]  zone     offset and name; empty if the day was given as a date
-- returns  "new streak longest total before": 1 if the day is new, length of the streak, longest streak, number of
--          sign-ins, longest streak before. Nothing if fill_in is needed; then nothing was written
--
-- A place is a small number, so that large ids do not make a bitmap grow.

local day, zone = tonumber(ARGV[1]), ARGV[6]
-- @include _state
local state = read_state(KEYS[1])
local again = day == state.last and redis.call("GETBIT", KEYS[4], ARGV[2]) == 1
if again then
    local repeated = state.token == ARGV[5]
    local before = repeated and state.before or state.longest
    return string.format("%d %d %d %d %d", repeated and 1 or 0, state.streak, state.longest, state.total, before)
end
-- A gap may be one that a change of the zone made.
local moved = zone ~= "" and state.zone ~= "" and zone ~= state.zone
if day <= state.last or day <= state.frozen or (moved and day > state.last + 1) then
    return false
end

local is_first_of_day = redis.call("STRLEN", KEYS[2]) == 0
-- @check_types streaks
if state.place < 0 then
    -- @check_types members, first
end
redis.call("SETBIT", KEYS[4], ARGV[2], 1)
if state.place < 0 then
    state.place = redis.call("RPUSH", KEYS[5], ARGV[3]) - 1
    redis.call("SETBIT", KEYS[6], state.place, 1)
    redis.call("PEXPIRE", KEYS[6], ARGV[4])
    state.first = day
end
state.streak = day == state.last + 1 and state.streak + 1 or 1
state.last, state.before, state.token = day, state.longest, ARGV[5]
state.longest, state.total = math.max(state.longest, state.streak), state.total + 1
if zone ~= "" then
    state.zone = zone
end
redis.call("SETBIT", KEYS[2], state.place, 1)
redis.call("ZADD", KEYS[3], day * 100000 + state.streak, state.place)
if is_first_of_day then
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
    redis.call("ZREMRANGEBYSCORE", KEYS[3], 0, (day - 3) * 100000) -- nobody's streak goes on from there
end
write_state(KEYS[1], state)
return string.format("1 %d %d %d %d", state.streak, state.longest, state.total, state.before)
