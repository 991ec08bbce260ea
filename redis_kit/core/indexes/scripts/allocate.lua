#!lua
-- Allocate a bitmap that is about to begin. It ends by itself unless the shape gets it.
--
-- KEYS[1]  state   hash: parameters and shape of an index
-- KEYS[2]  bitmap  bitmap
-- ARGV[1]  known   shape that the caller knows
-- ARGV[2]  bits    to allocate
-- ARGV[3]  ttl     of the bitmap, ms
-- returns  1, or 0 if the shape is another one: the bitmap may be a part of it

if (redis.call("HGET", KEYS[1], "shape") or "") ~= ARGV[1] then
    return 0
end
if redis.call("EXISTS", KEYS[2]) == 0 then
    redis.call("SETBIT", KEYS[2], ARGV[2] - 1, 0) -- the last bit first, so memory is allocated once and exactly
    redis.call("PEXPIRE", KEYS[2], ARGV[3])
end
return 1
