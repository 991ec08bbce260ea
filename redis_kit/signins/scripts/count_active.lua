#!lua
-- Count the users of one bucket who signed in on at least one of some days in a row, for each of several last days.
--
-- KEYS[1]     union   bitmap: scratch, deleted at the end
-- KEYS[2...]  days    bitmap: place -> signed in on that day; they follow each other
-- ARGV[1]     window  number of days in a row
-- returns     a number for each day from that of the window's length on

local window, counts = tonumber(ARGV[1]), {}
for last = window + 1, #KEYS do
    local counted = KEYS[last]
    if window > 1 then
        counted = KEYS[1]
        redis.call("BITOP", "OR", counted, unpack(KEYS, last - window + 1, last))
    end
    counts[#counts + 1] = redis.call("BITCOUNT", counted)
end
redis.call("DEL", KEYS[1])
return counts
