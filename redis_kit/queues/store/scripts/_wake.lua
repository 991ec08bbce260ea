-- One mark is enough: who takes it and leaves work behind sets the next one. A paused queue lets workers sleep.
local function wake()
    if redis.call("LLEN", signal) == 0 and redis.call("EXISTS", paused) == 0 then
        redis.call("RPUSH", signal, 1)
        redis.call("PEXPIRE", signal, 10000)
    end
end
