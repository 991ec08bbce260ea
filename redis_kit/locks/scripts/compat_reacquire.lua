#!lua flags=allow-oom
-- Let the lease of a lock of redis-py start again.
--
-- KEYS[1]  name   string: the holder's token
-- KEYS[2]  fence  string "<last fence> <last call that changed something> <token of our holder>"
-- ARGV[1]  token  of the lease
-- ARGV[2]  ttl    timeout of the lease, ms
-- returns  1, 0 if this token does not hold the lock
--
-- A caller may also give the name alone, which is the only key of redis-py's script.

if redis.call("GET", KEYS[1]) ~= ARGV[1] or tonumber(ARGV[2]) < 1 then
    return 0
end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
if KEYS[2] then
    redis.call("PEXPIRE", KEYS[2], string.format("%.0f", ARGV[2] + 3600000))
end
return 1
