#!lua
-- Store a batch of log records of one hour, once.
--
-- KEYS[1]     batch   counter: number of the writer's last batch that was stored
-- KEYS[2]     groups  zset: group of loggers -> time of its last record, ms
-- KEYS[3]     counts  zset: fingerprint -> records in the hour; "other" -> those of further fingerprints
-- KEYS[4]     levels  hash: level -> records in the hour; "dropped" -> records that were dropped
-- KEYS[5...]  parts   for each group its list and that of the groups beyond the limit; then a hash for each fingerprint
-- ARGV[1]     number  of the batch, growing with each batch of a writer
-- ARGV[2]     memory  time for which a repeated batch is recognised, ms
-- ARGV[3]     ttl     of the hour and of fingerprints, ms
-- ARGV[4]     recent_ttl  of groups and their lists, ms
-- ARGV[5]     most_groups
-- ARGV[6]     most_fingerprints
-- ARGV[7]     most_recent  length of a list
-- ARGV[8...]  for the levels, the lists and the fingerprints the number of each, then: level, count; group, number of
--             records, the records, the latest last; fingerprint, count, its latest record
-- returns     1 if stored, 0 if this batch was stored before
--
-- Everything that can be refused is checked first, since a script can't undo its writes.

local batch, groups, counts, levels = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, ttl, recent_ttl = tonumber(ARGV[1]), ARGV[3], ARGV[4]
local place, key = 7, 4

local function next_argument()
    place = place + 1
    return ARGV[place]
end

local function check_rights()
    local may = redis.acl_check_cmd
    for _, call in ipairs({
        {"SET", batch, 1, "PX", 1}, {"HINCRBY", levels, "x", 1}, {"PEXPIRE", levels, 1}, {"ZSCORE", groups, "x"},
        {"ZCARD", groups}, {"ZADD", groups, 1, "x"}, {"ZREMRANGEBYSCORE", groups, 0, 1}, {"ZINCRBY", counts, 1, "x"},
        {"LPUSH", KEYS[5] or batch, "x"}, {"LTRIM", KEYS[5] or batch, 0, 1}, {"HSETNX", levels, "x", "x"},
        {"HSET", levels, "x", "x"},
    }) do
        if not may(unpack(call)) then
            return redis.error_reply("NOPERM Logs need the commands of their component: see the how-to about ACL")
        end
    end
end

-- @check_types batch, groups, counts, levels
local refused = check_rights()
if refused then
    return refused
end
if tonumber(redis.call("GET", batch) or 0) >= number then
    return 0
end
for _ = 1, next_argument() do
    redis.call("HINCRBY", levels, next_argument(), next_argument())
end
redis.call("SET", batch, number, "PX", ARGV[2])
redis.call("PEXPIRE", levels, ttl)

local now = redis.call("TIME")
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call("ZREMRANGEBYSCORE", groups, "-inf", now - recent_ttl)
for _ = 1, next_argument() do
    local group, records = next_argument(), {}
    for position = 1, next_argument() do
        records[position] = next_argument()
    end
    local list = KEYS[key + 2]
    if redis.call("ZSCORE", groups, group) or redis.call("ZCARD", groups) < tonumber(ARGV[5]) then
        redis.call("ZADD", groups, now, group)
        list = KEYS[key + 1]
    end
    redis.pcall("LPUSH", list, unpack(records))
    redis.pcall("LTRIM", list, 0, ARGV[7] - 1)
    redis.call("PEXPIRE", list, recent_ttl)
    key = key + 2
end
redis.call("PEXPIRE", groups, recent_ttl)

local known = redis.call("ZCARD", counts) - (redis.call("ZSCORE", counts, "other") and 1 or 0)
for _ = 1, next_argument() do
    local fingerprint, count, record = next_argument(), next_argument(), next_argument()
    local is_new = not redis.call("ZSCORE", counts, fingerprint)
    key = key + 1
    if is_new and known >= tonumber(ARGV[6]) then
        fingerprint = "other"
    else
        known = known + (is_new and 1 or 0)
        redis.pcall("HSETNX", KEYS[key], "first", now)
        redis.pcall("HSET", KEYS[key], "record", record)
        redis.call("PEXPIRE", KEYS[key], ttl)
    end
    redis.call("ZINCRBY", counts, count, fingerprint)
end
redis.call("PEXPIRE", counts, ttl)
return 1
