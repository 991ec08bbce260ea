-- Wake a worker for ready jobs. One wake-up is enough: a worker that takes it and leaves work behind sets the next one. `count` is
-- the number of wake-ups, if the caller has read it.
-- @keys signal
-- needs  nothing
-- gives  wake
local function wake(count)
    if (count or redis.call("LLEN", signal)) > 0 then
        return
    end
    -- @hook on_wake
    redis.call("RPUSH", signal, 1)
    redis.call("PEXPIRE", signal, 10000)
end
