#!lua flags=allow-oom
-- Claim schedules that are due, for a short time in which their jobs are added. One without code and row is forgotten.
-- So is one without a row whose code no worker has, with its versions: a worker that comes back declares it again.
-- One script: of all workers that wake up for a tick, one gets it.
--
-- @keys due, names, code, stored, state, versions, watchers
-- ARGV[1]     supervisor
-- ARGV[2]     version   of its code, "" if that declares no schedule; it gets none before it has declared its own, and after it counted as gone
-- ARGV[3]     limit     schedules to claim, at most
-- ARGV[4]     lease     ms after which others may claim them
-- ARGV[5]     watch     ms for which a supervisor wakes up for ticks
-- ARGV[6]     most      supervisors that do so
-- ARGV[7]     longest   ms after which a version counts as gone
-- ARGV[8...]  skipped   schedules that this supervisor can't run, unless they have changed: then they are due since 0
-- returns     the time in ms, 1 if this one wakes up for ticks, ms to the next one (-1: none, 0: claim again), how many
--             schedules there are, {what `versions` holds}, the claim, then of each claimed schedule its name, when it
--             was due, and what `code`, `stored` and `state` hold of it, each "" for nothing

local supervisor, version, limit, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local longest = tonumber(ARGV[7])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @check_types due, names, code, stored, state, versions, watchers
redis.call("ZREMRANGEBYSCORE", watchers, "-inf", now)
local watches = redis.call("ZSCORE", watchers, supervisor) or redis.call("ZCARD", watchers) < tonumber(ARGV[6])
if watches then
    redis.call("ZADD", watchers, now + ARGV[5], supervisor)
    redis.call("PEXPIRE", watchers, ARGV[5])
end
local known = version ~= "" and redis.call("HGET", versions, version)
if known and now - (string.match(known, "%d+$") or 0) <= longest then
    redis.call("HSET", versions, version, string.match(known, "^%d*") .. string.format(" %.0f", now))
elseif version ~= "" then
    limit = 0
end
local skipped, claim = {}, string.format("%.0f", now + lease)
for at = 8, #ARGV do
    skipped[ARGV[at]] = true
end
local reply = {now, watches and 1 or 0, -1, redis.call("ZCARD", names), redis.call("HGETALL", versions), claim}
local most = limit + #ARGV - 7
local found = redis.call("ZRANGEBYSCORE", due, "-inf", now, "WITHSCORES", "LIMIT", 0, most)
for at = 1, #found, 2 do
    local name = found[at]
    if (not skipped[name] or found[at + 1] == "0") and limit > 0 then
        local definition, row = redis.call("HGET", code, name), redis.call("HGET", stored, name)
        local author = definition and not row and string.match(definition, "^[^\n]*")
        local last = author and string.match(redis.call("HGET", versions, author) or "", " (%d+)$")
        if author and (not last or now - last > longest) then
            redis.call("HDEL", versions, author)
            redis.call("HDEL", code, name)
            definition = nil
        end
        if definition or row then
            limit = limit - 1
            redis.call("ZADD", due, claim, name)
            local became = redis.call("HGET", state, name) or ""
            for _, value in ipairs({name, found[at + 1], definition or "", row or "", became}) do
                reply[#reply + 1] = value
            end
        else
            redis.call("ZREM", due, name)
            redis.call("ZREM", names, name)
            redis.call("HDEL", state, name)
        end
    end
end
local coming = redis.call("ZRANGEBYSCORE", due, string.format("(%.0f", now), "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
reply[3] = #found == 2 * most and 0 or coming and math.ceil(coming - now) or -1
return reply
