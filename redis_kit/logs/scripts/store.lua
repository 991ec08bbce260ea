#!lua
-- Store a batch of log records of one hour, once.
--
-- KEYS[1]     batch   counter: number of the writer's last batch that was stored
-- KEYS[2]     groups  zset: group of loggers -> time of its last record, ms
-- KEYS[3]     counts  zset: fingerprint -> records in the hour; "other" -> those of further fingerprints
-- KEYS[4]     levels  hash: level -> records in the hour; "dropped" -> records that were dropped
-- KEYS[5]     totals  hash: level -> records of all hours; "dropped" -> records that were dropped
-- KEYS[6...]  parts   the lists of levels and groups, and a hash for each fingerprint
-- ARGV[1]     number  of the batch, growing with each batch of a writer
-- ARGV[2]     memory  time for which a repeated batch is recognised, ms
-- ARGV[3]     ttl     of the hour and of fingerprints, ms
-- ARGV[4]     recent_ttl  of groups, lists and totals, ms
-- ARGV[5]     most_groups
-- ARGV[6]     most_fingerprints
-- ARGV[7]     most_recent    length of the list of a level
-- ARGV[8]     most_of_group  length of the list of a group
-- ARGV[9]     dropped  number of records that were dropped
-- ARGV[10] kinds   number of kinds of records
-- ARGV[11...] for each kind: the places among the parts of the list of its level, of that of its group, and of the hash
--             of its fingerprint; its level, group, fingerprint, and number of records. Then the records that are to be
--             listed, the latest last: the number of its kind, and its text
-- returns     1 if stored, 0 if this batch was stored before
--
-- Everything that can be refused is checked first, since a script can't undo its writes.

local batch, groups, counts, levels, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, ttl, recent_ttl = tonumber(ARGV[1]), ARGV[3], ARGV[4]
local may = redis.acl_check_cmd

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

local now = redis.call("TIME")
now = now[1] * 1000 + math.floor(now[2] / 1000)
local first, of_levels, lists, latest = 11 + 7 * ARGV[10], {dropped = tonumber(ARGV[9])}, {}, {}

local function add(place, record, most)
    local list = lists[place] or {most = most}
    list[#list + 1] = record
    lists[place] = list
end

redis.call("SET", batch, number, "PX", ARGV[2])
redis.call("ZREMRANGEBYSCORE", groups, "-inf", now - recent_ttl)
local is_listed = {}
for at = 11, first - 1, 7 do
    local level, group = ARGV[at + 3], ARGV[at + 4]
    of_levels[level] = (of_levels[level] or 0) + ARGV[at + 6]
    is_listed[group] = redis.call("ZSCORE", groups, group) or redis.call("ZCARD", groups) < tonumber(ARGV[5])
    if is_listed[group] then
        redis.call("ZADD", groups, now, group)
    end
end
for at = first, #ARGV, 2 do
    local kind, record = 4 + 7 * ARGV[at], ARGV[at + 1]
    latest[kind] = record
    add(ARGV[kind], record, ARGV[7])
    if is_listed[ARGV[kind + 4]] then
        add(ARGV[kind + 1], record, ARGV[8])
    end
end

for level, count in pairs(of_levels) do
    redis.call("HINCRBY", levels, level, count)
    redis.call("HINCRBY", totals, level, count)
end
redis.call("PEXPIRE", levels, ttl)
redis.call("PEXPIRE", totals, recent_ttl)
for place, records in pairs(lists) do
    local list = KEYS[5 + place]
    redis.pcall("LPUSH", list, unpack(records))
    redis.pcall("LTRIM", list, 0, records.most - 1)
    redis.call("PEXPIRE", list, recent_ttl)
end
redis.call("PEXPIRE", groups, recent_ttl)

local known = redis.call("ZCARD", counts) - (redis.call("ZSCORE", counts, "other") and 1 or 0)
for at = 11, first - 1, 7 do
    local fingerprint, hash = ARGV[at + 5], KEYS[5 + ARGV[at + 2]]
    local is_new = not redis.call("ZSCORE", counts, fingerprint)
    if is_new and known >= tonumber(ARGV[6]) then
        fingerprint = "other"
    else
        known = known + (is_new and 1 or 0)
        redis.pcall("HSETNX", hash, "first", now)
        redis.pcall("HSET", hash, "record", latest[at])
        redis.call("PEXPIRE", hash, ttl)
    end
    redis.call("ZINCRBY", counts, ARGV[at + 6], fingerprint)
end
redis.call("PEXPIRE", counts, ttl)
return 1
