#!lua
-- Store days of a user as the client worked them out, unless the user changed since the client read state and years.
--
-- KEYS[1]     user       string: state
-- KEYS[2]     streaks    zset: place -> last day and length of the latest streak
-- KEYS[3]     members    list: users by their place
-- KEYS[4]     first      bitmap: place -> signed in for the first time on the day
-- KEYS[5]     first_was  bitmap: place -> signed in for the first time on the day that was the first one
-- KEYS[6...]  bitmaps    bitmap: first those of years, then those of active users on days
-- ARGV[1]     old        state that the client read; "" for none
-- ARGV[2]     ttl        time for which active users are stored, ms
-- ARGV[3]     id         of the user
-- ARGV[4]     rank       last day and length of the latest streak; 0 if there is no sign-in
-- ARGV[5]     is_earlier 1 if the first day is another one than before
-- ARGV[6]     before     state up to the place in the bitmaps of days
-- ARGV[7]     place      that place; -1 if there is none
-- ARGV[8]     behind     state behind it
-- ARGV[9...]  years      bitmap of each year, then each as the client read it; "" for none
-- returns     1 if the days are stored, 0 if the user changed

local ttl, rank, place = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[7])
local years = (#ARGV - 8) / 2
local first_day = 6 + years  -- number of the first key of active users
local is_same = (redis.call("GET", KEYS[1]) or "") == ARGV[1]
for number = 6, first_day - 1 do
    is_same = (redis.call("GET", KEYS[number]) or "") == ARGV[number + 3 + years] and is_same
end
if not is_same then
    return 0
end
-- @check_types streaks, members, first, first_was
for number = first_day, #KEYS do
    redis.call("GETBIT", KEYS[number], 0)
end
for number = 6, first_day - 1 do
    redis.call("SET", KEYS[number], ARGV[number + 3])
end
if rank > 0 then
    if place < 0 then
        place = redis.call("RPUSH", KEYS[3], ARGV[3]) - 1
    end
    if ARGV[5] == "1" then
        redis.call("SETBIT", KEYS[5], place, 0)
        redis.call("SETBIT", KEYS[4], place, 1)
        redis.call("PEXPIRE", KEYS[4], ttl)
    end
    redis.call("ZADD", KEYS[2], rank, place)
end
for number = first_day, #KEYS do
    redis.call("SETBIT", KEYS[number], place, 1)
    redis.call("PEXPIRE", KEYS[number], ttl)
end
redis.call("SET", KEYS[1], ARGV[6] .. struct.pack("<i4", place) .. ARGV[8])
return 1
