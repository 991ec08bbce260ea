-- Take articles from a shelf.
--
-- KEYS[1]  left   counter  articles that are left
-- ARGV[1]  count  articles to take
-- returns  articles that are left, or -1 if there are too few

local left, count = KEYS[1], tonumber(ARGV[1])
-- @check_types left

if tonumber(redis.call("GET", left) or "0") < count then
    return -1
end
return redis.call("DECRBY", left, count)
