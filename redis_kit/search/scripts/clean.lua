#!lua flags=allow-oom
-- Delete keys of a generation that ended; all of them if no names are given.
--
-- KEYS[1]     state       hash: parameters and shape of an index
-- KEYS[2]     begun       set: generations whose keys may exist
-- KEYS[3]     docs        hash: record of each document
-- KEYS[4]     words       zset: ends of the names of all other keys of the generation
-- KEYS[5]     stats       hash: what the generation counts
-- KEYS[6...]  postings            of words, values and sorts
-- ARGV[1]     generation  that ended
-- ARGV[2...]  ends        of the names of the postings
-- returns     1, or 0 if the generation is alive

local state, begun, words = KEYS[1], KEYS[2], KEYS[4]
-- @check_types state, begun, words
local shape = redis.call("HGET", state, "shape") or ""
if string.find(shape, ARGV[1] .. ":", 1, true) then
    return 0
end
for place = 6, #KEYS do
    redis.call("UNLINK", KEYS[place])
end
if #ARGV > 1 then
    redis.call("ZREM", words, unpack(ARGV, 2))
else
    redis.call("UNLINK", KEYS[3], words, KEYS[5])
    redis.call("SREM", begun, ARGV[1])
end
return 1
