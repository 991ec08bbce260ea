#!lua
-- Store documents in a generation, in place of those with the same ids, or delete them.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and its documents, words and postings for people
-- KEYS[2]     writer      string: the token of the only process that may write
-- KEYS[3]     begun       set: generations whose keys may exist
-- KEYS[4]     docs        hash: record of each document
-- KEYS[5]     words       zset: ends of the names of all other keys of the generation, each with score 0
-- KEYS[6]     stats       hash: what the generation counts
-- KEYS[7...]  postings                 of values of facets, then of words and sorts: those that get documents, then those that lose some
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     token       of the caller
-- ARGV[4]     generation  to write to
-- ARGV[5]     prefix      number of bytes before the ends of names
-- ARGV[6]     average     length of a document, for which the scores of words were computed
-- ARGV[7]     values      number of keys of facets
-- ARGV[8]     length      number of words that the generation gains
-- ARGV[9]     ids         of the documents: JSON
-- ARGV[10]    versions    of the records that the caller has read; "" for none: JSON
-- ARGV[11]    gains       of each key: a list of scores and ids: JSON
-- ARGV[12]    losses      of each key: a list of ids: JSON
-- ARGV[13...] records     of the documents; "" to delete one
-- returns     "", or a reason: lost, stale with the stored parameters and shape, changed

local state, writer, begun, docs, words, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local FIRST, MOST, VERSION = 6, 3000, 8
-- @check_types state, writer, begun, docs, words, stats
if redis.call("GET", writer) ~= ARGV[3] then
    return {"lost"}
end
local stored = redis.call("HMGET", state, "parameters", "shape")
if stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
end
local average = redis.call("HGET", stats, "average")
if average and average ~= ARGV[6] then
    return {"changed"}
end
local ids, versions = cjson.decode(ARGV[9]), cjson.decode(ARGV[10])
local records = redis.call("HMGET", docs, unpack(ids))
for place, version in ipairs(versions) do
    if string.sub(records[place] or "", 1, VERSION) ~= version then
        return {"changed"}
    end
end
for place = FIRST + 1, #KEYS do
    redis.call("ZCARD", KEYS[place])
end

local prefix, postings, gone, new = tonumber(ARGV[5]), 0, {}, {}
local gains, losses = cjson.decode(ARGV[11]), cjson.decode(ARGV[12])
for place, members in ipairs(losses) do
    local key = KEYS[FIRST + #gains + place]
    postings = postings - redis.call("ZREM", key, unpack(members))
    if redis.call("EXISTS", key) == 0 then
        gone[#gone + 1] = string.sub(key, prefix + 1)
    end
end
for place, members in ipairs(gains) do
    postings = postings + redis.call("ZADD", KEYS[FIRST + place], unpack(members))
    new[#new + 1] = 0
    new[#new + 1] = string.sub(KEYS[FIRST + place], prefix + 1)
end

local function each(command, key, arguments, first, last)
    local count = 0
    for start = first, last, MOST do
        count = count + redis.call(command, key, unpack(arguments, start, math.min(last, start + MOST - 1)))
    end
    return count
end

local values = 2 * tonumber(ARGV[7])
each("ZREM", words, gone, 1, #gone)
local facets = each("ZADD", words, new, 1, values)
each("ZADD", words, new, values + 1, #new)
local fields = {}
for place, id in ipairs(ids) do
    if ARGV[12 + place] == "" then
        redis.call("HDEL", docs, id)
    else
        fields[#fields + 1] = id
        fields[#fields + 1] = ARGV[12 + place]
    end
end
each("HSET", docs, fields, 1, #fields)
redis.call("SADD", begun, ARGV[4])
redis.call("HSET", stats, "average", ARGV[6])
redis.call("HINCRBY", stats, "length", ARGV[8])
local count = redis.call("HINCRBY", stats, "postings", postings)
redis.call("HINCRBY", stats, "values", facets)
redis.call("HINCRBY", stats, "changes", 1)
local sizes = string.format("%d %d %d", redis.call("HLEN", docs), redis.call("ZCARD", words), count)
redis.call("HSET", state, "items:" .. ARGV[4] .. ":1", sizes)
return {""}
