-- Frees the unique key of a job that has come to its end. Where no job has one, this look is all that it costs.
local some_unique = redis.call("HLEN", owners) > 0
if some_unique then redis.call("HLEN", unique) end
local function free(id)
    local owned = some_unique and redis.call("HGET", owners, id)
    if owned then
        local key = string.match(owned, "^%l+ (.*)$") or ""
        redis.call("HDEL", owners, id)
        if redis.call("HGET", unique, key) == id then
            redis.call("HDEL", unique, key)
        end
    end
end
