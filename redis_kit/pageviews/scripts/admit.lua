#!lua
-- Admit names of pages and objects that are counted on a day, up to a limit.
--
-- KEYS[1]  pages       set: names of the day's pages and objects
-- KEYS[2]  identities  set: days of the month with the kinds of identities in their sketches
-- ARGV[1]  limit   number of names that it may hold
-- ARGV[2]  ttl     of the names, ms
-- ARGV[3]  kind    the day with the kind of identity that is counted now
-- ARGV[4]  months  how long the kinds are stored, ms
-- ARGV[5...]       names to admit
-- returns  for each name 1 if it is counted, 0 if the day is full

local pages, identities = KEYS[1], KEYS[2]
local count, admitted = redis.call("SCARD", pages), {}
redis.call("SCARD", identities)  -- fails before the first write if it is another type
for place = 5, #ARGV do
    local known = redis.call("SISMEMBER", pages, ARGV[place])
    if known == 0 and count < tonumber(ARGV[1]) then
        redis.call("SADD", pages, ARGV[place])
        count, known = count + 1, 1
    end
    admitted[place - 4] = known
end
redis.call("SADD", identities, ARGV[3])
redis.call("PEXPIRE", pages, ARGV[2])
redis.call("PEXPIRE", identities, ARGV[4])
return admitted
