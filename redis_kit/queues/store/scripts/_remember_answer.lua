-- Remember the last answers to a worker, at least 250, so that a repeated call gets an answer that was lost on its way: the
-- member of `running` of a job that is done, and else the answer and the member.
-- needs  answers
-- gives  earlier_answer, remember_answer
local function earlier_answer(member)
    for _, entry in ipairs(redis.call("LRANGE", answers, 0, -1)) do
        local answer, of = string.match(entry, "^(%d) (.*)$")
        if of == member then
            return tonumber(answer)
        end
    end
end

local function remember_answer(member, answer)
    if redis.call("RPUSH", answers, answer .. " " .. member) > 300 then redis.call("LTRIM", answers, -250, -1) end
    redis.call("PEXPIRE", answers, 3600 * 1000)
    return answer
end
