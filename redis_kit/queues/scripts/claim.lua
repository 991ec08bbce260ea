#!lua flags=allow-oom
-- Give ready jobs to a worker, after the scheduled ones that are due were made ready. A paused queue gives none.
--
-- KEYS[1]  workers    zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  info       hash: worker -> since when it is alive, ms, and what it says of itself
-- KEYS[3]  running    zset of scores 0: worker/claim.number/place/id
-- KEYS[4]  jobs       hash: id -> record
-- KEYS[5]  ready      zset: id -> place
-- KEYS[6]  scheduled  zset: id -> when it is due, ms
-- KEYS[7]  sequence   counter of jobs that got ready
-- KEYS[8]  signal     list: one element while a worker should look
-- KEYS[9]  paused     the queue is paused while it exists: since when, ms
-- ARGV[1]  worker
-- ARGV[2]  claim        unique to this call; repeated, it gives the same jobs
-- ARGV[3]  limit        how many jobs, at most
-- ARGV[4]  lease        ms
-- ARGV[5]  information  what a new worker says of itself
-- returns  ms to the next job or to the end of a pause, ms to the end of another's lease (-1: never), the time in ms since
--          1970, then id, token and record of each job

local workers, info, running, jobs, ready, scheduled, sequence, signal, paused = unpack(KEYS)
local worker, claim, limit, lease, information = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mine, attempt = worker .. "/" .. claim, string.format("%.0f/", now) .. worker

-- @include _record
-- @include _alive
-- @include _wake
local again = redis.call("ZRANGEBYLEX", running, "[" .. mine .. ".", "(" .. mine .. "/")
local left = redis.call("PTTL", paused)  -- -2 when it is not there, -1 without an end
local is_paused = left ~= -2
local coming = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")
local marked = redis.call("LLEN", signal)
redis.call("ZCARD", ready)

local due = {}
if coming[2] and not is_paused and tonumber(coming[2]) <= now then
    due = redis.call("ZRANGEBYSCORE", scheduled, "-inf", now, "LIMIT", 0, 200)
    local records, last = redis.call("HMGET", jobs, unpack(due)), redis.call("INCRBY", sequence, #due)
    for at, id in ipairs(due) do
        redis.call("ZADD", ready, place(read(records[at] or ""), last - #due + at), id)
    end
    redis.call("ZREM", scheduled, unpack(due))
    coming = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")
end

-- One more than asked for, to know whether any is left.
local first = (#again > 0 or is_paused) and {} or redis.call("ZRANGE", ready, 0, limit, "WITHSCORES")
local ids, reply = {}, {0, 0, now}
local function give(id, token, record)
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = id, token, record
end
for at = 1, math.min(#first, 2 * limit), 2 do
    table.insert(ids, first[at])
end
local records = #ids > 0 and redis.call("HMGET", jobs, unpack(ids))
renew(0.95)
for at, id in ipairs(ids) do
    if records[at] then
        local token = mine .. "." .. at .. "/" .. first[2 * at]
        redis.call("ZADD", running, 0, token .. "/" .. id)
        give(id, token, attempted(id, records[at], attempt))
    end
end
if #ids > 0 then
    redis.call("ZREM", ready, unpack(ids))
end
for _, member in ipairs(again) do
    local token, id = string.match(member, "^([^/]+/[^/]+/[^/]+)/(.*)$")
    local record = redis.call("HGET", jobs, id)
    if record then
        give(id, token, record)
    end
end

local more = #first > 2 * limit or #again > 0 and not is_paused and redis.call("ZCARD", ready) > 0
reply[1] = more and 0 or coming[2] and math.max(0, coming[2] - now) or -1
if is_paused then
    reply[1] = left < 0 and -1 or math.max(1, left)
end
reply[2] = next_lease()
-- Who takes all it can hold looks away; another one has to watch what is left.
if #ids < limit and not more then
    if marked > 0 then redis.call("DEL", signal) end
elseif marked == 0 and reply[1] >= 0 and reply[1] <= 2000 then
    wake()
end
return reply
