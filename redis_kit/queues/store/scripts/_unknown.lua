-- A row of `unknown` is "<jobs> <since> <known> <shape>": how many jobs wait for a worker that can run such a call, since
-- when the first of them does, and when a worker last said that it can, in ms; 0 for never.
local function row(digest)
    local jobs_then, since, known, shape = string.match(redis.call("HGET", unknown, digest) or "", "^(%d+) (%d+) (%d+) (.*)$")
    return shape, tonumber(jobs_then), tonumber(since), tonumber(known)
end

local function keep_row(digest, known, shape)
    local first = redis.call("ZRANGE", deferred, 0, 0, "WITHSCORES")[2] or now
    local numbers = string.format("%.0f %.0f %.0f ", redis.call("ZCARD", deferred), first, known)
    redis.call("HSET", unknown, digest, numbers .. shape)
end
