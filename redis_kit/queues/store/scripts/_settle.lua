-- Remembers a worker's last answers, 250 at least, so that a repeated call gets the one that was lost on its way.
local worker, mark = string.match(token, "^([^/]+)/([^/]+)/")
if not worker then
    return 0
end
local answers = redis.call("HGET", settled, worker) or ""
local ends = tonumber(redis.call("ZSCORE", workers, worker) or 0)

local function earlier()
    local _, at = string.find(answers, " " .. mark .. ":", 1, true)
    return at and tonumber(string.sub(answers, at + 1, at + 1))
end

local function settle(answer)
    redis.call("HSET", settled, worker, string.sub(answers, -4080) .. " " .. mark .. ":" .. answer)
    if ends - now < lease * 0.95 then
        redis.call("ZADD", workers, "XX", string.format("%.0f", now + lease), worker)
    end
    return answer
end
