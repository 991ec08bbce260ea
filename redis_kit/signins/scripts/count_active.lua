#!lua flags=no-writes
-- Count the users of one bucket who signed in on each of some days.
--
-- KEYS[1...]  days  bitmap: place -> signed in on that day
-- returns     a number for each day

local counts = {}
for at, day in ipairs(KEYS) do
    counts[at] = redis.call("BITCOUNT", day)
end
return counts
