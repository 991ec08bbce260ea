-- The server's clock. A fence is its microseconds, or more: it grows even after the loss of all data.
local clock = redis.call("TIME")
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local fence = string.format("%.0f", micros)
local now_text = string.sub(fence, 1, -4)
local live = "(" .. now_text
local last_fence = tonumber(redis.call("GET", KEYS[1]))
if last_fence and last_fence >= micros then
    fence = string.format("%.0f", last_fence + 1)
end
