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
-- returns  packed: 1 if the day is new, length of the streak, longest streak, number of sign-ins, longest streak before.
--          Nothing if fill_in is needed; then nothing was written
--
-- A place is a small number, so that large ids do not make a bitmap grow.

local day, zone = tonumber(ARGV[1]), ARGV[6]
-- @include _state
local last, streak, longest, total, first_day, place, frozen, before, token, zone_was = read_state(KEYS[1])
if day == last and redis.call("GETBIT", KEYS[4], ARGV[2]) == 1 then
    local repeated = token == ARGV[5]
    return answer(repeated, streak, longest, total, repeated and before or longest)
end
-- A gap may be one that a change of the zone made.
local has_moved = zone ~= "" and zone_was ~= "" and zone ~= zone_was
if day <= last or day <= frozen or (has_moved and day > last + 1) then
    return false
end

local is_first_of_day = redis.call("STRLEN", KEYS[2]) == 0
-- @check_types streaks
if place < 0 then
    -- @check_types members, first
end
redis.call("SETBIT", KEYS[4], ARGV[2], 1)
if place < 0 then
    place, first_day = redis.call("RPUSH", KEYS[5], ARGV[3]) - 1, day
    redis.call("SETBIT", KEYS[6], place, 1)
    redis.call("PEXPIRE", KEYS[6], ARGV[4])
end
streak = day == last + 1 and streak + 1 or 1
before, longest, total = longest, math.max(longest, streak), total + 1
redis.call("SETBIT", KEYS[2], place, 1)
redis.call("ZADD", KEYS[3], day * 100000 + streak, place)
if is_first_of_day then
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
    redis.call("ZREMRANGEBYSCORE", KEYS[3], 0, (day - 3) * 100000) -- no streak goes on from there
end
zone = zone == "" and zone_was or zone
write_state(KEYS[1], zone, day, streak, longest, total, first_day, place, frozen, before, ARGV[5])
return answer(true, streak, longest, total, before)
