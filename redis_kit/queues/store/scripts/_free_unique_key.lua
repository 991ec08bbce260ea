-- Free the unique key of a job that has ended. On a queue without unique keys, it costs one command.
-- needs  owners, unique
-- gives  has_unique_keys, free_unique_key
local function has_unique_keys()
    local any = redis.call("HLEN", owners) > 0
    if any then redis.call("HLEN", unique) end
    return any
end

local function free_unique_key(id, any_unique)
    local owned = any_unique and redis.call("HGET", owners, id)
    if owned then
        local key = string.match(owned, "^%l+ (.*)$") or ""
        redis.call("HDEL", owners, id)
        if redis.call("HGET", unique, key) == id then
            redis.call("HDEL", unique, key)
        end
    end
end
