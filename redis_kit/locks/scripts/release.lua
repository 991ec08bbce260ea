#!lua flags=allow-oom
-- Release a lock. If callers wait, wake one and reserve the lock for it.
--
-- KEYS[1]  holder   string that begins with the holder's token, and ends with a "+" if callers may wait
-- KEYS[2]  live     zset: kind and name -> when the lease ends
-- KEYS[3]  waiters  zset of tokens, while callers wait
-- KEYS[4]  signal   list on which waiters block
-- ARGV[1]  token    of the lease; it becomes the baton
-- ARGV[2]  member   kind and name
-- ARGV[3]  unsure   "1" if the lease may have been released before, or not acquired, so that it does not count as lost
-- returns  1 if the lock was released, 0 if this token does not hold it
--
-- If the woken waiter is dead, or gave up, the lock is free after a second.

local held = redis.call("GET", KEYS[1])
if not held or string.find(held, ARGV[1], 1, true) ~= 1 then
    redis.call("ZREM", KEYS[3], ARGV[1])  -- it may belong to an attempt that gave up
    if not ARGV[3] then
-- @include _statistics
        count_in_history(KEYS[2], 0, 0, 0, 0, 1)
    end
    return 0
end
redis.call("ZREM", KEYS[2], ARGV[2])
if string.sub(held, -1) ~= "+" or redis.call("EXISTS", KEYS[3]) == 0 then
    redis.call("DEL", KEYS[1])
    return 1
end
redis.call("SET", KEYS[1], "~" .. ARGV[1], "PX", 1000)
redis.call("LPUSH", KEYS[4], ARGV[1]) -- in front of an older baton that was not popped
redis.call("PEXPIRE", KEYS[4], 1000)
return 1
