-- Add the jobs of a claim that is repeated, as its answer was lost, to a reply. Returns whether the claim was made before.
-- For ten minutes it is known as repeated: the first call may still come in late, when nobody waits for its answer.
-- needs  running, jobs, repeats, owner, now
-- gives  repeat_claim
local function repeat_claim(reply)
    local members = redis.call("ZRANGEBYLEX", running, "[" .. owner .. "/", "(" .. owner .. "0")
    for _, member in ipairs(members) do
        local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
        local record = id and redis.call("HGET", jobs, id)
        for _, item in ipairs(record and {struct.pack(">BII", #place, #id, #record), place, id, record} or {}) do
            reply[#reply + 1] = item
        end
    end
    redis.call("ZREMRANGEBYSCORE", repeats, "-inf", now - 600 * 1000)
    local added = redis.call("ZADD", repeats, now, owner)
    redis.call("PEXPIRE", repeats, 600 * 1000)
    return added == 0 or #members > 0
end
