#!lua flags=no-writes
-- Return the bitmaps of several days, each with the bits of all buckets one after the other.
--
-- KEYS[1...]  bitmaps  bitmap: for each bucket those of the days, in the same order
-- ARGV[1]     count    number of days
-- returns     one bitmap for each day; in all of them, a bucket takes as many bytes

local count, days = tonumber(ARGV[1]), {}
for day = 1, count do
    days[day] = {}
end
for start = 1, #KEYS, count do
    local bitmaps, longest = {}, 0
    for day = 1, count do
        bitmaps[day] = redis.call("GET", KEYS[start + day - 1]) or ""
        longest = math.max(longest, #bitmaps[day])
    end
    for day, bitmap in ipairs(bitmaps) do
        table.insert(days[day], bitmap .. string.rep("\0", longest - #bitmap))
    end
end
for day = 1, count do
    days[day] = table.concat(days[day])
end
return days
