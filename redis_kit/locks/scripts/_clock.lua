-- Return the server's clock in microseconds, in milliseconds and in milliseconds as text; and the next fence of a
-- bucket: the microseconds, or more, so that it grows even after the loss of all data.
-- needs  nothing
-- gives  read_clock, next_fence
local function read_clock()
    local clock = redis.call("TIME")
    local micros = clock[1] * 1000000 + clock[2]
    local now = math.floor(micros / 1000)
    return micros, now, string.format("%.0f", now)
end

local function next_fence(key, micros)
    return string.format("%.0f", math.max((tonumber(redis.call("GET", key)) or 0) + 1, micros))
end
