#!lua flags=allow-oom
-- Forget the schedules of code that no worker has any more.
-- One script: a worker that declares one at the same moment keeps it.
--
-- @keys due, code, versions
-- ARGV[1]     alive     ms after which a version counts as gone
-- ARGV[2...]  schedules
-- returns     the names of the forgotten ones; the next worker that looks at them removes what is left

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @check_types due, code, versions
local forgotten = {}
for at = 2, #ARGV do
    local line, lives = string.match(redis.call("HGET", code, ARGV[at]) or "", "^([^\n]*)\n"), false
    for version in string.gmatch(line or "", "%S+") do
        local last = string.match(redis.call("HGET", versions, version) or "", " (%d+)$")
        lives = lives or last and now - last <= tonumber(ARGV[1])
    end
    if line and not lives then
        redis.call("HDEL", code, ARGV[at])
        redis.call("ZADD", due, 0, ARGV[at])
        forgotten[#forgotten + 1] = ARGV[at]
    end
end
return forgotten
