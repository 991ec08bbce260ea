-- A job gets ready: a place among the ready ones, and the wake-up of a worker. A lower place is earlier: first by
-- priority, then by the order in which jobs got ready; it is exact, as it stays below 2^53. One wake-up is enough: a worker
-- that takes it and leaves work behind sets the next one. On a paused queue workers sleep.
-- needs  signal, paused
-- gives  place_of, wake
local function place_of(priority, sequence)
    return string.format("%.0f", -priority * 2 ^ 44 + sequence)
end

local function wake()
    if redis.call("LLEN", signal) == 0 and redis.call("EXISTS", paused) == 0 then
        redis.call("RPUSH", signal, 1)
        redis.call("PEXPIRE", signal, 10000)
    end
end
