-- Takes jobs from a worker, at most `limit`, and makes those ready, in their old place, that `keep` says yes to. A worker
-- with none left is forgotten. Needs _sound.
local function give_back(from, limit, keep)
    local members = redis.call("ZRANGEBYLEX", running, "[" .. from .. "/", "(" .. from .. "0", "LIMIT", 0, limit)
    for _, member in ipairs(members) do
        local score, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
        local record = id and redis.call("HGET", jobs, id)
        redis.call("ZREM", running, member)
        if record and keep(id, read(record)) then
            redis.call("ZADD", ready, sound(score), id)
            wake()
        end
    end
    if #members < limit then
        redis.call("ZREM", workers, from)
        redis.call("HDEL", info, from)
        redis.call("HDEL", settled, from)
    end
    return #members
end
