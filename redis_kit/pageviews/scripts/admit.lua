#!lua
-- Admit names of pages and objects that are counted on a day, up to a limit.
--
-- KEYS[1]  pages       set: names of the day's pages and objects
-- KEYS[2]  identities  set: days of the month with the kinds of identities in their sketches
-- ARGV[1]  limit   number of names that it may hold
-- ARGV[2]  ttl     of the names, ms
-- ARGV[3]  months  how long the kinds are stored, ms
-- ARGV[4]  kind    the day with the kind of identity that is counted now
-- ARGV[5...]       names to admit
-- returns  for each name 1 if it is counted, 0 if the day is full

local limit = tonumber(ARGV[1])
local count = redis.call("SCARD", KEYS[1])
local admitted = {}

-- @check_types identities
for place = 5, #ARGV do
    local known = redis.call("SISMEMBER", KEYS[1], ARGV[place])
    if known == 0 and count < limit then
        redis.call("SADD", KEYS[1], ARGV[place])
        count, known = count + 1, 1
    end
    admitted[place - 4] = known
end
redis.call("SADD", KEYS[2], ARGV[4])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
redis.call("PEXPIRE", KEYS[2], ARGV[3])
return admitted
