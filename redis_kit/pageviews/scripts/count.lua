#!lua
-- Add the views of one hour to a page, an object, or the site.
--
-- KEYS[1]  batch     string: number of the last batch of this writer that was added
-- KEYS[2]  hours     hash: hour of the day -> views
-- KEYS[3]  days      hash: day of the month -> views
-- KEYS[4]  hourly    string: sketch of the hour's visitors
-- KEYS[5]  daily     string: sketch of the day's visitors
-- KEYS[6]  monthly   string: sketch of the month's visitors
-- KEYS[7]  top       zset: page or object -> its views of the day
-- ARGV[1]  number    of the batch, growing with each batch of a writer; 0 for a batch that is never repeated
-- ARGV[2]  memory    time for which a repeated batch is recognised, ms
-- ARGV[3]  ttl       of days and months, ms
-- ARGV[4]  hour_ttl  of hours, ms
-- ARGV[5]  hour      field of the hour
-- ARGV[6]  day       field of the day
-- ARGV[7]  views     to add
-- ARGV[8]  members   number of pairs of member and views that follow
-- ARGV[9...]         those pairs, then the visitors
-- returns  1 if added, 0 if this batch was added before
--
-- Everything that can be refused is checked first, since a script can't undo its writes. Sketches are written before
-- numbers: if a sketch is corrupt, adding the same visitors again to the others changes nothing.

local number, ttl = tonumber(ARGV[1]), ARGV[3]
local may = redis.acl_check_cmd

if not (may("SET", KEYS[1], 1, "PX", 1) and may("HINCRBY", KEYS[2], 1, 1) and may("PFADD", KEYS[4], 1)
    and may("ZINCRBY", KEYS[7], 1, 1) and may("PEXPIRE", KEYS[2], 1)) then
    return redis.error_reply("NOPERM Page views need SET, HINCRBY, PFADD, ZINCRBY and PEXPIRE")
end
if number > 0 and tonumber(redis.call("GET", KEYS[1]) or 0) >= number then
    return 0
end
for place = 2, 3 do
    if not tonumber(redis.call("HGET", KEYS[place], ARGV[place + 3]) or 0) then
        return redis.error_reply("WRONGTYPE The hash " .. KEYS[place] .. " holds no number of views")
    end
end
-- @check_types top
for place = 4, 6 do
    local magic = redis.call("GETRANGE", KEYS[place], 0, 3)
    if magic ~= "" and magic ~= "HYLL" then
        return redis.error_reply("WRONGTYPE The key " .. KEYS[place] .. " holds no HyperLogLog")
    end
end

local pairs_end = 8 + 2 * tonumber(ARGV[8])
if #ARGV > pairs_end then
    for place = 4, 6 do
        local added = redis.pcall("PFADD", KEYS[place], unpack(ARGV, pairs_end + 1))
        if type(added) == "table" then
            return redis.error_reply("WRONGTYPE The HyperLogLog " .. KEYS[place] .. " is corrupt: " .. added.err)
        end
    end
end
redis.call("HINCRBY", KEYS[2], ARGV[5], ARGV[7])
redis.call("HINCRBY", KEYS[3], ARGV[6], ARGV[7])
for place = 9, pairs_end, 2 do
    redis.call("ZINCRBY", KEYS[7], ARGV[place + 1], ARGV[place])
end
for place = 2, 7 do
    redis.call("PEXPIRE", KEYS[place], (place == 2 or place == 4) and ARGV[4] or ttl)
end
if number > 0 then
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
end
return 1
