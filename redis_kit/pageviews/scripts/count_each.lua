#!lua flags=allow-oom
-- Count the visitors of several sketches, each by itself: one command in place of one for each day of a range.
--
-- KEYS[1...]  sketches  string: of one page
-- returns  the numbers of visitors
--
-- It writes nothing but the number that a sketch keeps about itself, so a full server may run it.

local counts = {}
for place = 1, #KEYS do
    counts[place] = redis.call("PFCOUNT", KEYS[place])
end
return counts
