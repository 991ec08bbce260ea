#!lua
-- Store a batch of log records of one hour, once.
--
-- KEYS[1]     batch   counter: number of the writer's last batch that was stored
-- KEYS[2]     groups  zset: group of loggers -> time of its last record, ms
-- KEYS[3]     counts  zset: fingerprint -> records in the hour; "other" -> those of further fingerprints
-- KEYS[4]     levels  hash: level -> records in the hour; "dropped" -> records that were dropped
-- KEYS[5]     totals  hash: level -> records of all hours; "dropped" -> records that were dropped
-- KEYS[6...]  parts   a list for each level; for each group its list and that of the groups beyond the limit; then a hash
--                     for each fingerprint
-- ARGV[1]     number  of the batch, growing with each batch of a writer
-- ARGV[2]     memory  time for which a repeated batch is recognised, ms
-- ARGV[3]     ttl     of the hour and of fingerprints, ms
-- ARGV[4]     recent_ttl  of groups, lists and totals, ms
-- ARGV[5]     most_groups
-- ARGV[6]     most_fingerprints
-- ARGV[7]     most_recent    length of the list of a level
-- ARGV[8]     most_of_group  length of the list of a group
-- ARGV[9...]  for the counts, the lists of levels, those of groups and the fingerprints the number of each, then:
--             level, count; the records, after their number, the latest last; group, the records in the same way;
--             fingerprint, count, its latest record
-- returns     1 if stored, 0 if this batch was stored before
--
-- Everything that can be refused is checked first, since a script can't undo its writes.

local batch, groups, counts, levels, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, ttl, recent_ttl = tonumber(ARGV[1]), ARGV[3], ARGV[4]
local may = redis.acl_check_cmd
local place, key = 8, 5

local function next_argument()
    place = place + 1
    return ARGV[place]
end

local function push_records(list, most)
    local records = {}
    for position = 1, next_argument() do
        records[position] = next_argument()
    end
    redis.pcall("LPUSH", list, unpack(records))
    redis.pcall("LTRIM", list, 0, most - 1)
    redis.call("PEXPIRE", list, recent_ttl)
end

-- @check_types batch, groups, counts, levels, totals
local may_count = may("SET", batch, 1, "PX", 1) and may("HINCRBY", levels, "x", 1) and may("PEXPIRE", levels, 1)
    and may("ZSCORE", counts, "x") and may("ZINCRBY", counts, 1, "x")
local may_list = may("ZADD", groups, 1, "x") and may("ZREMRANGEBYSCORE", groups, 0, 1) and may("LPUSH", batch, "x")
    and may("LTRIM", batch, 0, 1) and may("HSETNX", levels, "x", "x") and may("HSET", levels, "x", "x")
if not (may_count and may_list) then
    return redis.error_reply("NOPERM Logs need the commands of their component: see the how-to about ACL")
end
if tonumber(redis.call("GET", batch) or 0) >= number then
    return 0
end
for _ = 1, next_argument() do
    local level, count = next_argument(), next_argument()
    redis.call("HINCRBY", levels, level, count)
    redis.call("HINCRBY", totals, level, count)
end
redis.call("SET", batch, number, "PX", ARGV[2])
redis.call("PEXPIRE", levels, ttl)
redis.call("PEXPIRE", totals, recent_ttl)

local now = redis.call("TIME")
now = now[1] * 1000 + math.floor(now[2] / 1000)
for _ = 1, next_argument() do
    key = key + 1
    push_records(KEYS[key], ARGV[7])
end
redis.call("ZREMRANGEBYSCORE", groups, "-inf", now - recent_ttl)
for _ = 1, next_argument() do
    local group, list = next_argument(), KEYS[key + 2]
    if redis.call("ZSCORE", groups, group) or redis.call("ZCARD", groups) < tonumber(ARGV[5]) then
        redis.call("ZADD", groups, now, group)
        list = KEYS[key + 1]
    end
    push_records(list, ARGV[8])
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
