#!lua
-- Say which pages and objects may be counted by their own names on a day.
--
-- KEYS[1]  pages   set: names of the day's pages and objects
-- ARGV[1]  most    how many it may hold
-- ARGV[2]  kept    for how long it is kept, ms
-- ARGV[3...]       names to admit
-- returns  for each name 1 when it may, 0 when the day is full

local most = tonumber(ARGV[1])
local count = redis.call("SCARD", KEYS[1])
local admitted = {}

for place = 3, #ARGV do
    local known = redis.call("SISMEMBER", KEYS[1], ARGV[place])
    if known == 0 and count < most then
        redis.call("SADD", KEYS[1], ARGV[place])
        count, known = count + 1, 1
    end
    admitted[place - 2] = known
end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return admitted
