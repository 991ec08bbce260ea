#!lua
-- Answer a query: from its stored result, or anew, and then store the best documents for the pages that follow.
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
-- KEYS[11...] sets                 zsets of words, values and sorts, and one to fill for each clause of several
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     plan        of the query; places are those of KEYS: JSON
-- ARGV[4]     offset      of the first document to return
-- ARGV[5]     limit       number of documents to return
-- ARGV[6]     text        of the query, for the list of empty ones
-- ARGV[7]     slow        earlier queries of the caller that were slow, and how long ago they were, ms: JSON
-- ARGV[8]     prefix      number of bytes before the ends of names
-- returns     "", ids with scores, total, facets, and the number that is added to scores; or a reason: stale with the stored
--             parameters and shape, values with their number, lost

local state, docs, words, stats, hits, header = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local empty, slow, found, extra = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local MAX_HITS, TTL, DAY, ENTRIES = 1000, 60000, 86400000, 100
local COMMON, LEAST, MOST = 0.05, 1000, 20000
local CANDIDATES, CHUNK, SCALE = 5000, 500, 10000
-- @check_types state, docs, words, stats, hits, header, empty, slow, found, extra
local stored = redis.call("HMGET", state, "parameters", "shape")
if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
end
local parts = redis.call("EXISTS", docs, words, stats)
if parts ~= 0 and parts ~= 3 then
    return {"lost"}
end
local plan, offset, text = cjson.decode(ARGV[3]), tonumber(ARGV[4]), ARGV[6]
local counts = redis.call("HMGET", stats, "changes", "values")
local changes = counts[1] or "0"
if plan.values and plan.values ~= tonumber(counts[2] or "0") then
    return {"values", counts[2] or "0"}
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Lists of queries are for people: the latest ones of a day.
local function note(key, time, entry)
    redis.call("ZADD", key, time, entry)
    redis.call("ZREMRANGEBYSCORE", key, "-inf", now - DAY)
    redis.call("ZREMRANGEBYRANK", key, 0, -ENTRIES - 1)
    redis.call("PEXPIRE", key, DAY)
end

for _, entry in ipairs(cjson.decode(ARGV[7])) do
    note(slow, now - entry[2], entry[1])
    redis.call("HINCRBY", state, "slow", 1)
end
redis.call("HINCRBY", state, "searches", 1)

local function answer(total, facets, shift)
    if total == "0" and offset == 0 and text ~= "" then
        redis.call("HINCRBY", state, "empty", 1)
        note(empty, now, text)
    end
    local page = redis.call("ZRANGE", hits, offset, offset + ARGV[5] - 1, "REV", "WITHSCORES")
    return {"", page, total, facets, shift}
end

local cached = redis.call("HMGET", header, "changes", "total", "facets", "shift")
if cached[1] and (offset > 0 or cached[1] == changes) then
    return answer(cached[2], cached[3], cached[4])
end

local documents = redis.call("HLEN", docs)
local factors = {} -- of the scores of each set, and what is taken from these before: for explain
local is_lost = false

local function combine(command, target, sets, weights)
    local arguments = {command, target, #sets}
    for place = 1, #sets do
        arguments[3 + place] = sets[place]
    end
    arguments[#arguments + 1] = "WEIGHTS"
    for place = 1, #sets do
        arguments[#arguments + 1] = weights[place]
    end
    redis.call(unpack(arguments))
end

-- The set of a clause, its size, and the factor that makes its scores comparable with those of others: BM25's idf.
local function read(clause)
    local sets = {}
    for place, number in ipairs(clause.sets) do
        sets[place] = KEYS[number]
        if redis.call("EXISTS", sets[place]) == 0 and redis.call("ZSCORE", words, string.sub(sets[place], ARGV[8] + 1)) then
            is_lost = true
        end
    end
    local set = sets[1]
    if #sets > 1 then
        set = KEYS[clause.target]
        combine("ZUNIONSTORE", set, sets, clause.weights)
    end
    local size = redis.call("ZCARD", set)
    local factor = clause.scored and math.log(1 + (documents - size + 0.5) / (size + 0.5)) / SCALE or 0
    for place, number in ipairs(clause.sets) do
        factors[number] = {factor * clause.weights[place], 0}
    end
    return {set = set, size = size, factor = factor}
end

local function read_all(clauses)
    local sets = {}
    for place, clause in ipairs(clauses) do
        sets[place] = read(clause)
    end
    table.sort(sets, function(one, other) return one.size < other.size end)
    return sets
end

-- A common word finds nothing by itself beside a rarer one: it only adds to the scores of what others find.
local required, optional, excluded = read_all(plan.required), read_all(plan.optional), read_all(plan.excluded)
if is_lost then
    return {"lost"}
end
local base, command, adding = required, "ZINTERSTORE", optional
if #required == 0 then
    local common = math.min(MOST, math.max(LEAST, COMMON * documents))
    local rare = 0
    while rare < #optional and optional[rare + 1].size <= common do
        rare = rare + 1
    end
    base, adding = {}, {}
    for place, set in ipairs(optional) do
        local list = (rare == 0 or place <= rare) and base or adding
        list[#list + 1] = set
    end
    command = rare > 0 and "ZUNIONSTORE" or command
end

local result, factor = found, 1 -- the set with the documents so far, and the factor of its scores
if #base == 1 then
    result, factor = base[1].set, base[1].factor
elseif #base > 1 then
    local sets, weights = {}, {}
    for place, set in ipairs(base) do
        sets[place], weights[place] = set.set, set.factor
    end
    combine(command, found, sets, weights)
end

local function apply(other_command, sets, weights)
    combine(other_command, found, sets, weights)
    result, factor = found, 1
end

if #excluded > 0 then
    local sets = {result}
    for place, set in ipairs(excluded) do
        sets[place + 1] = set.set
    end
    redis.call("ZDIFFSTORE", found, #sets, unpack(sets))
    result = found
end
for _, set in ipairs(adding) do
    if set.size > 0 then
        combine("ZINTERSTORE", extra, {result, set.set}, {0, set.factor})
        apply("ZUNIONSTORE", {result, extra}, {factor, 1})
    end
end

local function has(record, phrases)
    local count = 0
    for _, phrase in ipairs(phrases) do
        count = count + (string.find(record, phrase, 1, true) and 1 or 0)
    end
    return count
end

if #plan.phrases + #plan.without > 0 then
    local candidates = redis.call("ZRANGE", result, 0, CANDIDATES - 1, "REV", "WITHSCORES")
    local members = {}
    for start = 1, #candidates, 2 * CHUNK do
        local ids = {}
        for place = start, math.min(#candidates, start + 2 * CHUNK - 1), 2 do
            ids[#ids + 1] = candidates[place]
        end
        for place, record in ipairs(redis.call("HMGET", docs, unpack(ids))) do
            if record and has(record, plan.phrases) == #plan.phrases and has(record, plan.without) == 0 then
                members[#members + 1] = candidates[start + 2 * place - 1]
                members[#members + 1] = ids[place]
            end
        end
    end
    redis.call("UNLINK", found)
    for start = 1, #members, 2 * CHUNK do
        redis.call("ZADD", found, unpack(members, start, math.min(#members, start + 2 * CHUNK - 1)))
    end
    result = found
end

-- Boosts are shares of a score of 0 to 1: each is linear from the least value of its sort to the largest.
local shift = 0
if #plan.boosts > 0 then
    local best = redis.call("ZRANGE", result, -1, -1, "WITHSCORES")[2]
    best = best and best * factor or 0
    local share, sets, weights, lows = 1, {result}, {0}, {}
    for place, boost in ipairs(plan.boosts) do
        local set = KEYS[boost[1]]
        local low = tonumber(redis.call("ZRANGE", set, 0, 0, "WITHSCORES")[2] or 0)
        local high = redis.call("ZRANGE", set, -1, -1, "WITHSCORES")[2] or 0
        local weight = high - low > 0 and boost[2] / (high - low) or 0
        share, shift = share - boost[2], shift - low * weight
        sets[place + 1], weights[place + 1], lows[place] = set, weight, low
    end
    local relevance = best > 0 and share / best or 0
    weights[1] = factor * relevance
    for number, pair in pairs(factors) do
        factors[number] = {pair[1] * relevance, pair[2]}
    end
    for place, boost in ipairs(plan.boosts) do
        factors[boost[1]] = {weights[place + 1], lows[place]}
    end
    apply("ZINTERSTORE", sets, weights)
end
if plan.order[1] then
    apply("ZINTERSTORE", {result, KEYS[plan.order[1]]}, {0, plan.order[2]})
end

local total = redis.call("ZCARD", result)
local sizes = {}
for place, sets in ipairs(plan.facets) do
    sizes[place] = {}
    for value, number in ipairs(sets) do
        sizes[place][value] = redis.call("ZINTERCARD", 2, result, KEYS[number])
    end
end
redis.call("ZRANGESTORE", hits, result, 0, MAX_HITS - 1, "REV")
if factor ~= 1 then
    combine("ZUNIONSTORE", hits, {hits}, {factor})
end
local packed = {}
for number, pair in pairs(factors) do
    packed[tostring(number)] = pair
end
redis.call("HSET", header, "changes", changes, "total", total, "facets", cjson.encode(sizes), "shift", tostring(shift), "factors", cjson.encode(packed))
redis.call("PEXPIRE", header, TTL)
redis.call("PEXPIRE", hits, TTL)
redis.call("UNLINK", found, extra)
for _, number in ipairs(plan.temporary) do
    redis.call("UNLINK", KEYS[number])
end
return answer(tostring(total), cjson.encode(sizes), tostring(shift))
