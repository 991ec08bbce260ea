#!lua
-- Store documents in a generation, in place of those with the same ids, or delete them.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and its documents, words and postings for people
-- KEYS[2]     writer      string: the token of the only process that may write
-- KEYS[3]     begun       set: generations whose keys may exist
-- KEYS[4]     docs        hash: record of each document
-- KEYS[5]     words       zset: ends of the names of all other keys of the generation, each with score 0
-- KEYS[6]     stats       hash: what the generation counts
-- KEYS[7...]  postings                 that get documents, first those of values, and then those that lose some
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     token       of the caller
-- ARGV[4]     generation  to write to
-- ARGV[5]     prefix      number of bytes before the ends of names
-- ARGV[6]     average     length of a document, for which the scores of words were computed
-- ARGV[7]     values      number of keys of values
-- ARGV[8]     length      number of words that the generation gains
-- ARGV[9]     ids         of the documents: JSON
-- ARGV[10]    versions    of the records that the caller has read; "" for none: JSON
-- ARGV[11]    gains       of each key: a list of scores and ids: JSON
-- ARGV[12]    losses      of each key: a list of ids: JSON
-- ARGV[13...] records     of the documents; "" to delete one
-- returns     "", or a reason: lost, stale with the stored parameters and shape, changed

local state, writer, begun, docs, words, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- @check_types state, writer, begun, docs, words, stats
local stored = redis.call("HMGET", state, "parameters", "shape")
if redis.call("GET", writer) ~= ARGV[3] then
    return {"lost"}
elseif stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
elseif (redis.call("HGET", stats, "average") or ARGV[6]) ~= ARGV[6] then
    return {"changed"}
end
local ids, versions = cjson.decode(ARGV[9]), cjson.decode(ARGV[10])
for place, record in ipairs(redis.call("HMGET", docs, unpack(ids))) do
    if string.sub(record or "", 1, 8) ~= versions[place] then
        return {"changed"}
    end
end
for place = 7, #KEYS do
    redis.call("ZCARD", KEYS[place])
end

local gains, losses = cjson.decode(ARGV[11]), cjson.decode(ARGV[12])
local postings, values = 0, 0
for place, members in ipairs(losses) do
    local key = KEYS[6 + #gains + place]
    postings = postings - redis.call("ZREM", key, unpack(members))
    if redis.call("EXISTS", key) == 0 then
        redis.call("ZREM", words, string.sub(key, ARGV[5] + 1))
    end
end
for place, members in ipairs(gains) do
    local key = KEYS[6 + place]
    postings = postings + redis.call("ZADD", key, unpack(members))
    local is_new = redis.call("ZADD", words, 0, string.sub(key, ARGV[5] + 1))
    values = values + (place <= tonumber(ARGV[7]) and is_new or 0)
end
for place, id in ipairs(ids) do
    if ARGV[12 + place] == "" then
        redis.call("HDEL", docs, id)
    else
        redis.call("HSET", docs, id, ARGV[12 + place])
    end
end
redis.call("SADD", begun, ARGV[4])
redis.call("HSET", stats, "average", ARGV[6])
redis.call("HINCRBY", stats, "length", ARGV[8])
redis.call("HINCRBY", stats, "values", values)
redis.call("HINCRBY", stats, "changes", 1)
postings = redis.call("HINCRBY", stats, "postings", postings)
local sizes = string.format("%d %d %d", redis.call("HLEN", docs), redis.call("ZCARD", words), postings)
redis.call("HSET", state, "items:" .. ARGV[4] .. ":1", sizes)
return {""}
