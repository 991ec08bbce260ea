-- Remember the last answers to a worker, at least 250, so that a repeated call gets an answer that was lost on its way.
-- A token that names no worker has no answer.
-- needs  settled, workers, now, lease
-- gives  worker_and_mark, read_answers, earlier_answer, remember_answer
local function worker_and_mark(token)
    return string.match(token, "^([^/]+)/([^/]+)/")
end

local function read_answers(worker)
    return redis.call("HGET", settled, worker) or "", tonumber(redis.call("ZSCORE", workers, worker) or 0)
end

local function earlier_answer(answers, mark)
    local _, at = string.find(answers, " " .. mark .. ":", 1, true)
    return at and tonumber(string.sub(answers, at + 1, at + 1))
end

local function remember_answer(worker, mark, answers, ends, answer)
    redis.call("HSET", settled, worker, string.sub(answers, -4080) .. " " .. mark .. ":" .. answer)
    if ends - now < lease * 0.95 then
        redis.call("ZADD", workers, "XX", string.format("%.0f", now + lease), worker)
    end
    return answer
end
