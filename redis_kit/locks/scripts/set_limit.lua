#!lua flags=allow-oom
-- Set the limit of a semaphore that overrides all others, or remove it, and wake waiters.
--
-- KEYS[1]  limit    string
-- KEYS[2]  waiters  zset of tokens
-- KEYS[3]  signal   list on which waiters block
-- ARGV[1]  limit    or empty
-- returns  1

local waiting = redis.call("ZCARD", KEYS[2])
local missing = waiting > 0 and waiting - redis.call("LLEN", KEYS[3]) or 0

if ARGV[1] == "" then
    redis.call("DEL", KEYS[1])
else
    redis.call("SET", KEYS[1], ARGV[1])
end
for _ = 1, math.min(missing, 200) do
    redis.call("RPUSH", KEYS[3], "1")
end
if missing > 0 then
    redis.call("PEXPIRE", KEYS[3], 1000)
end
return 1
