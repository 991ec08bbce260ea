#!lua
-- Admit names of pages and objects that are counted on a day, up to a limit.
--
-- KEYS[1]  pages   set: names of the day's pages and objects
-- ARGV[1]  limit   number of names that it may hold
-- ARGV[2]  ttl     of the set, ms
-- ARGV[3...]       names to admit
-- returns  for each name 1 if it is counted, 0 if the day is full

local limit = tonumber(ARGV[1])
local count = redis.call("SCARD", KEYS[1])
local admitted = {}

for place = 3, #ARGV do
    local known = redis.call("SISMEMBER", KEYS[1], ARGV[place])
    if known == 0 and count < limit then
        redis.call("SADD", KEYS[1], ARGV[place])
        count, known = count + 1, 1
    end
    admitted[place - 2] = known
end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return admitted
