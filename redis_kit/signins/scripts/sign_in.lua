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
-- ARGV[5]  by       token of this call, and behind it the zone: offset and name; no zone if the day was given as a date
-- returns  the state after the sign-in; if there was one on the day, as it is, so that its token tells whether this call
--          made it. Nothing if fill_in is needed; then nothing was written
--
-- A place is a small number, so that large ids do not make a bitmap grow. The state is State in users.py.

local FIELDS, TOKEN, ZONE = "<I4I4I4I4I4i4I4I4", 8, 41
local user, active, streaks, year, members, first = unpack(KEYS)
local day, offset, id, ttl, by = unpack(ARGV)
day = tonumber(day)
local last, streak, longest, total, first_day, place, frozen = 0, 0, 0, 0, 0, -1, 0
local known = redis.call("GET", user)
if known then
    last, streak, longest, total, first_day, place, frozen = struct.unpack(FIELDS, known)
    if day == last and redis.call("GETBIT", year, offset) == 1 then
        return known
    elseif day <= last or day <= frozen then
        return false
    elseif #by == TOKEN then
        by = by .. string.sub(known, ZONE)
    elseif day > last + 1 and #known >= ZONE and string.sub(known, ZONE) ~= string.sub(by, TOKEN + 1) then
        return false -- the gap may be one that a change of the zone made
    end
end

local is_first_of_day = redis.call("STRLEN", active) == 0
if place < 0 then
    -- @check_types streaks, members, first
end
redis.call("SETBIT", year, offset, 1)
if place < 0 then
    place, first_day = redis.call("RPUSH", members, id) - 1, day
    redis.call("SETBIT", first, place, 1)
    redis.call("PEXPIRE", first, ttl)
end
local length = day == last + 1 and streak + 1 or 1
local ranked = redis.pcall("ZADD", streaks, day * 100000 + length, place)
if type(ranked) == "table" then -- a wrong type; a check before would cost each sign-in a command
    redis.call("SETBIT", year, offset, 0)
    return ranked
end
redis.call("SETBIT", active, place, 1)
if is_first_of_day then
    redis.call("PEXPIRE", active, ttl)
    redis.call("ZREMRANGEBYSCORE", streaks, 0, (day - 3) * 100000) -- no streak goes on from there
end
local state = struct.pack(FIELDS, day, length, math.max(longest, length), total + 1, first_day, place, frozen, longest) .. by
redis.call("SET", user, state)
return state
