-- needs  chat, sizes, messages, members, idle
-- gives  trim

-- Remove messages that nobody needs. Members who have not read one for `age` ms hold none any more; 100 at a time.
local function trim(last, keep, limit, age)
    local length = redis.call("LLEN", messages)
    local floor = last - length
    local head = length > tonumber(keep) and redis.call("LINDEX", messages, 0)
    if head and string.match(head, "^%d+") + age < redis.call("TIME")[1] * 1000 then
        local behind = redis.call("ZRANGE", members, "-inf", floor, "BYSCORE", "LIMIT", 0, 100, "WITHSCORES")
        for place = 1, #behind, 2 do
            redis.call("ZADD", idle, behind[place + 1], behind[place])
            redis.call("ZREM", members, behind[place])
        end
    end
    local read = tonumber(redis.call("ZRANGE", members, 0, 0, "WITHSCORES")[2] or last)
    local target = math.max(math.min(read, last - keep), last - limit)
    redis.call("LTRIM", messages, math.max(0, target - floor), -1)
    redis.call("ZADD", sizes, math.min(length, last - target), chat)
end
