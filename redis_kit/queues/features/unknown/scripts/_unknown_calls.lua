-- A row of `unknown` is "<jobs> <since> <known> <shape>": how many jobs wait for a worker that can run it, since
-- when the first of them waits, and when a worker last said that it can run it, in ms; 0 for never.
-- needs  unknown, deferred, now
-- gives  read_unknown, write_unknown
local function read_unknown(digest)
    local count, since, known, shape = string.match(redis.call("HGET", unknown, digest) or "", "^(%d+) (%d+) (%d+) (.*)$")
    return shape, tonumber(count), tonumber(since), tonumber(known)
end

local function write_unknown(digest, known, shape)
    local first = redis.call("ZRANGE", deferred, 0, 0, "WITHSCORES")[2] or now
    local numbers = string.format("%.0f %.0f %.0f ", redis.call("ZCARD", deferred), first, known)
    redis.call("HSET", unknown, digest, numbers .. shape)
end
