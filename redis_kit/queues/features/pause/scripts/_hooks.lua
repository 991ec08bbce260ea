-- What scripts do about a pause, each part at a hook of theirs.
-- @on on_wake
-- On a paused queue workers sleep.
-- @keys paused
if redis.call("EXISTS", paused) == 1 then
    return
end
-- @on on_pause
-- @keys paused
pause = redis.call("PTTL", paused)
is_paused = pause ~= -2
-- @on on_stats
-- @keys paused
local since = redis.call("GET", paused)
if since then reply[7], reply[8] = tonumber(since) or 0, redis.call("PTTL", paused) end
-- @on on_sweep
-- @keys paused
used = used + 16 * redis.call("EXISTS", paused)
