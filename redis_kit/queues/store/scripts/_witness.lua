-- Since when the server is there for all, as far as anybody can tell: workers that beat in time have seen it.
local function there_since()
    local oldest = now
    local alive = redis.call("ZRANGEBYSCORE", workers, string.format("%.0f", now + lease / 2), "+inf", "WITHSCORES", "LIMIT", 0, 100)
    for at = 1, #alive, 2 do
        if alive[at + 1] % 1 == 0 then
            local since = tonumber(string.match(redis.call("HGET", info, alive[at]) or "", "^%d+"))
            oldest = math.min(oldest, since or oldest)
        end
    end
    return oldest
end
