-- Wake a worker for ready jobs. One wake-up is enough: a worker that takes it and leaves work behind sets the next one. On
-- a paused queue workers sleep.
-- needs  signal, paused
-- gives  wake
local function wake()
    if redis.call("LLEN", signal) == 0 and redis.call("EXISTS", paused) == 0 then
        redis.call("RPUSH", signal, 1)
        redis.call("PEXPIRE", signal, 10000)
    end
end
