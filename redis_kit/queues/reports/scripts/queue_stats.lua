-- Return how a queue is doing: counts by state, how long the next job has been waiting, what was done in each minute.
-- One script: the numbers are of one moment.
--
-- Without a first line of flags it runs whether or not the server refuses writes, and a write inside says which.
--
-- @keys scheduled, ready, running, dead, jobs, minutes, workers, info
-- ARGV[1]   minutes    how many, this one among them
-- returns  how many are scheduled, ready (with those that wait for a limit), running, dead; for how many ms the next ready job, the next scheduled one,
--          or the first one of 100 lanes that wait for a limit has been due, the longest of these (-1: none is); the present minute since 1970; since when it is paused
--          (-1: it is not), ms to the end of that (-1: none); how many workers are alive, of 100 without those of one job that runs alone; how many of these 100
--          say that they claim no more; {shape of calls that workers returned, how many jobs, how many ms ago the first
--          of these came, and when a worker could run it last, ...}; why the server refuses writes, or ""; of each minute in which something happened, the
--          earliest first: its place, 0 for the first, jobs done, attempts failed, jobs begun, ms by which these were
--          late, together and at most

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local minute = math.floor(now / 60000)

-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
local waiting = redis.call("ZCARD", ready)
-- @hook on_count(waiting)
local reply = {redis.call("ZCARD", scheduled), waiting, redis.call("ZCARD", running), redis.call("ZCARD", dead)}
local record = redis.call("HGET", jobs, redis.call("ZRANGE", ready, 0, 0)[1] or "")
local _, _, _, due = read_record(record or "")
-- A scheduled job gets ready with the next claim. If no worker claims, it waits as a ready job does.
local time = tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]) or now + 1
local age, overdue = record and math.max(0, now - due) or -1, now - time
local longest = math.max(-1, age, overdue)
-- @hook on_age(now, longest, read_record)
reply[5], reply[6] = math.min(2 ^ 53, longest), minute
reply[7], reply[8], reply[9], reply[10], reply[11] = -1, -1, redis.call("ZCOUNT", workers, now, "+inf"), 0, {}
-- @hook on_stats(now, reply)
for _, worker in ipairs(redis.call("ZRANGEBYSCORE", workers, now, "+inf", "LIMIT", 0, 100)) do
    local about = redis.call("HGET", info, worker) or ""
    local state = string.match(about, '"state": ?"(%l+)"')
    if string.find(about, '"alone": ?true') then
        reply[9] = reply[9] - 1
    elseif state == "quiet" or state == "stopping" then
        reply[10] = reply[10] + 1
    end
end
local written = redis.pcall("ZADD", ready, "XX", 0, "")  -- changes nothing
local refusal = type(written) == "table" and written.err or ""
local reason = string.match(refusal, "%u+ ") or ""
reply[12] = string.find("OOM READONLY MISCONF NOREPLICAS ", reason, 1, true) and refusal or ""
-- @include _each_minute
local place, start = #reply, minute - ARGV[1] + 1
each_minute(start, minute, function(each, done, failed, begun, late, latest)
    reply[place + 1], reply[place + 2], reply[place + 3] = each - start, done, failed
    reply[place + 4], reply[place + 5], reply[place + 6] = begun, late, latest
    place = place + 6
end)
return reply
