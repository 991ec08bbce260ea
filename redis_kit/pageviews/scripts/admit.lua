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

-- @include _admit
local names = {}
for place = 5, #ARGV do
    names[place - 4] = ARGV[place]
end
return admit(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[4], ARGV[3], names)
