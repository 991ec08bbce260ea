-- List the numbers of records of some hours.
--
-- KEYS[1...]  levels  hash: level -> records of an hour
-- ARGV[1...]  field   of each of them to read
-- returns     for each hour the numbers, in the order of the fields

local replies = {}
for place, levels in ipairs(KEYS) do
    replies[place] = redis.call("HMGET", levels, unpack(ARGV))
end
return replies
