-- Return since when the server is available to all workers, as far as anybody can tell: those with heartbeats in time
-- have seen it.
-- needs  workers, info, now, lease
-- gives  up_since
local function up_since()
    local oldest, half = now, string.format("%.0f", now + lease / 2)
    local alive = redis.call("ZRANGEBYSCORE", workers, half, "+inf", "WITHSCORES", "LIMIT", 0, 100)
    for at = 1, #alive, 2 do
        if alive[at + 1] % 1 == 0 then
            local since = tonumber(string.match(redis.call("HGET", info, alive[at]) or "", "^%d+"))
            oldest = math.min(oldest, since or oldest)
        end
    end
    return oldest
end
