-- Wake a worker for ready jobs. One wake-up is enough: a worker that takes it and leaves work behind sets the next one. On
-- a paused queue workers sleep. `count` is the number of wake-ups, if the caller has read it.
-- @keys signal, paused
-- needs  nothing
-- gives  wake
local function wake(count)
    if (count or redis.call("LLEN", signal)) == 0 and redis.call("EXISTS", paused) == 0 then
        redis.call("RPUSH", signal, 1)
        redis.call("PEXPIRE", signal, 10000)
    end
end
