#!lua flags=no-writes
-- List the longest streaks of one bucket that end on one of some days.
--
-- KEYS[1]  streaks  zset: place -> last day and length of the latest streak
-- KEYS[2]  members  list: users by their place
-- ARGV[1]  from     number of the first of these days
-- ARGV[2]  to       number of the last one
-- ARGV[3]  least    length
-- ARGV[4]  most     number of streaks
-- returns  id, length, id, length, ..., the longest first

local found, most = {}, tonumber(ARGV[4])
for day = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local begin = day * 100000
    local scored = redis.call("ZRANGE", KEYS[1], begin + 99999, begin + tonumber(ARGV[3]), "BYSCORE", "REV", "LIMIT", 0,
        most, "WITHSCORES")
    for at = 1, #scored, 2 do
        found[#found + 1] = { place = scored[at], length = tonumber(scored[at + 1]) - begin }
    end
end
table.sort(found, function(one, other)
    return one.length > other.length or (one.length == other.length and tonumber(one.place) < tonumber(other.place))
end)

local listed = {}
for at = 1, math.min(most, #found) do
    listed[#listed + 1] = redis.call("LINDEX", KEYS[2], found[at].place)
    listed[#listed + 1] = found[at].length
end
return listed
