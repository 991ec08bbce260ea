#!lua
-- Answer a query by its stored result, or find the documents and store the best ones for the pages that follow.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and what is counted
-- KEYS[2]     docs        hash: record of each document
-- KEYS[3]     words       zset: ends of the names of all other keys of the generation
-- KEYS[4]     stats       hash: what the generation counts
-- KEYS[5]     hits        zset: the best documents of the result
-- KEYS[6]     header      hash: total and facets of the result, and how it was scored
-- KEYS[7]     empty       zset: the latest queries without a result, by their times
-- KEYS[8]     slow        zset: the latest slow queries, by their times
-- KEYS[9]     found       zset: documents that match so far
-- KEYS[10]    extra       zset: further scores of some of them
-- KEYS[11...] sets              of words, values and sorts, and one to fill for each clause of several
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     plan        of the query: clauses, phrases and others, whose places are those of KEYS: JSON
-- ARGV[4]     offset      of the first document to return
-- ARGV[5]     limit       number of documents to return
-- ARGV[6]     text        of the query, for the list of empty ones
-- ARGV[7]     slow        earlier queries of the caller that were slow, and how long ago they were, ms: JSON
-- ARGV[8]     prefix      number of bytes before the ends of names
-- returns     "", ids with scores, total, numbers of facets, and what is added to scores; or a reason: stale with the
--             stored parameters and shape, values with their number, lost

local state, docs, words, stats, hits, header = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local empty, slow, found, extra, prefix = KEYS[7], KEYS[8], KEYS[9], KEYS[10], tonumber(ARGV[8])
local MAX_HITS, TTL, DAY, ENTRIES = 1000, 60000, 86400000, 100
-- @check_types state, docs, words, stats, hits, header, empty, slow, found, extra
-- @include _sets
-- @include _ranking
local stored = redis.call("HMGET", state, "parameters", "shape")
if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
end
local parts = redis.call("EXISTS", docs, words, stats)
if parts ~= 0 and parts ~= 3 then
    return {"lost"}
end
local plan, offset = cjson.decode(ARGV[3]), tonumber(ARGV[4])
local counts = redis.call("HMGET", stats, "changes", "values")
if plan.values and plan.values ~= tonumber(counts[2] or "0") then
    return {"values"}
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function note(key, counter, time, entry) -- for people: the latest queries of a day
    redis.call("ZADD", key, time, entry)
    redis.call("ZREMRANGEBYSCORE", key, "-inf", now - DAY)
    redis.call("ZREMRANGEBYRANK", key, 0, -ENTRIES - 1)
    redis.call("PEXPIRE", key, DAY)
    redis.call("HINCRBY", state, counter, 1)
end
for _, entry in ipairs(cjson.decode(ARGV[7])) do
    note(slow, "slow", now - entry[2], entry[1])
end
redis.call("HINCRBY", state, "searches", 1)

local cached = redis.call("HMGET", header, "changes", "total", "facets", "shift")
if not cached[1] or (offset == 0 and cached[1] ~= (counts[1] or "0")) then
    local documents, factors = redis.call("HLEN", docs), {}
    local required = read_clauses(plan.required, documents, factors)
    local optional = read_clauses(plan.optional, documents, factors)
    local excluded = read_clauses(plan.excluded, documents, factors)
    if not (required and optional and excluded) then
        return {"lost"}
    end
    local result, factor = match(required, optional, excluded, documents)
    local shift = 0
    if #plan.phrases + #plan.without > 0 then
        keep_phrases(result, plan.phrases, plan.without)
        result = found
    end
    if #plan.boosts > 0 then
        shift = lift(result, factor, plan.boosts, factors)
        result, factor = found, 1
    end
    if plan.order[1] then
        intersect(found, {result, KEYS[plan.order[1]]}, {0, plan.order[2]})
        result, factor = found, 1
    end
    local sizes, lines = {}, {}
    for place, number in ipairs(plan.facets) do
        sizes[place] = redis.call("ZINTERCARD", 2, result, KEYS[number])
    end
    for number, pair in pairs(factors) do
        lines[#lines + 1] = string.format("%.17g %.17g %s", pair[1], pair[2], KEYS[number])
    end
    cached = {counts[1] or "0", tostring(redis.call("ZCARD", result)), table.concat(sizes, " "), string.format("%.17g", shift)}
    redis.call("ZRANGESTORE", hits, result, 0, MAX_HITS - 1, "REV")
    unite(hits, {hits}, {factor})
    redis.call("PEXPIRE", hits, TTL)
    redis.call("HSET", header, "changes", cached[1], "total", cached[2], "facets", cached[3], "shift", cached[4])
    redis.call("HSET", header, "factors", table.concat(lines, "\n"))
    redis.call("PEXPIRE", header, TTL)
    redis.call("UNLINK", found, extra)
    for _, number in ipairs(plan.temporary) do
        redis.call("UNLINK", KEYS[number])
    end
end
if cached[2] == "0" and offset == 0 and ARGV[6] ~= "" then
    note(empty, "empty", now, ARGV[6])
end
return {"", redis.call("ZRANGE", hits, offset, offset + ARGV[5] - 1, "REV", "WITHSCORES"), cached[2], cached[3], cached[4]}
