#!lua flags=allow-oom
-- Store how far a loop of a running job is, and its progress.
--
-- KEYS[1]  running   zset of scores 0: worker/claim/place/id
-- KEYS[2]  cursor    hash: number of a loop -> how far it is
-- KEYS[3]  result    hash: what is stored about the call
-- ARGV[1]  token     of the claim
-- ARGV[2]  id        of the job
-- ARGV[3]  number    of the loop
-- ARGV[4]  position  how far the loop is
-- ARGV[5]  keep_ms   to store that
-- ARGV[6]  progress  what others see; "" if no result is stored
-- ARGV[7]  ttl_ms    to store the progress
-- returns  1 when it is stored, 0 when the claim was lost

local running, cursor, result = unpack(KEYS)
local token, id, number, position, progress = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @check_types cursor, result
if not redis.call("ZSCORE", running, token .. "/" .. id) then
    return 0
end
redis.call("HSET", cursor, number, position)
redis.call("PEXPIRE", cursor, ARGV[5])
if progress ~= "" then
    redis.call("HSET", result, "progress", string.format("%.0f ", now) .. progress)
    redis.call("PEXPIRE", result, ARGV[7])
end
return 1
