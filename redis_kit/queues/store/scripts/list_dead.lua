#!lua flags=no-writes
-- List dead jobs, the latest first.
--
-- KEYS[1]  dead     zset: id -> when it died, ms
-- KEYS[2]  reasons  hash: id -> why it died
-- KEYS[3]  jobs     hash: id -> record
-- ARGV[1]  limit    how many, at most
-- returns  id, ms when it died, reason, record of each

local reply, latest = {}, redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
for at = 1, #latest, 2 do
    local id = latest[at]
    local found = {id, latest[at + 1], redis.call("HGET", KEYS[2], id) or "", redis.call("HGET", KEYS[3], id) or ""}
    for _, item in ipairs(found) do table.insert(reply, item) end
end
return reply
