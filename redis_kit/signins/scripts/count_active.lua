#!lua flags=no-writes
-- Count the users of one bucket who signed in on each of some days.
--
-- KEYS[1...]  days  bitmap: place -> signed in on that day
-- returns     a number of 4 bytes for each day: a client reads one string faster than as many replies

local counts = {}
for at, day in ipairs(KEYS) do
    counts[at] = struct.pack("<I4", redis.call("BITCOUNT", day))
end
return table.concat(counts)
