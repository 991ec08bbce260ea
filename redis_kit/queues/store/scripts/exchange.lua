#!lua flags=allow-oom
-- End jobs that are done, make ready what is due, and give ready jobs to the worker. A paused queue gives none.
--
-- KEYS[1]      workers    zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]      info       hash: worker -> since when it is alive, ms, and what it says of itself
-- KEYS[3]      running    zset of scores 0: worker/claim.number/place/id
-- KEYS[4]      jobs       hash: id -> record
-- KEYS[5]      ready      zset: id -> place
-- KEYS[6]      scheduled  zset: id -> when it is due, ms
-- KEYS[7]      sequence   counter of jobs that got ready
-- KEYS[8]      signal     list: one element while a worker should look
-- KEYS[9]      paused     the queue is paused while it exists: since when, ms
-- KEYS[10]     settled    hash: worker -> its last answers
-- KEYS[11]     minutes    hash: minute -> minute, jobs done, attempts failed, how late jobs began
-- KEYS[12]     unique     hash: unique key -> id
-- KEYS[13]     owners     hash: id -> until when it has a unique key, and that key
-- KEYS[14...]  results    the hash of the result, and the list of those who wait for it, of each ended job that has one
-- ARGV[1]      worker
-- ARGV[2]      claim        unique to this call; repeated, it gives the same jobs
-- ARGV[3]      limit        how many jobs, at most
-- ARGV[4]      lease        ms
-- ARGV[5]      information  what a new worker says of itself
-- ARGV[6]      repeated     1 when the answer to the same call was lost, else 0
-- ARGV[7...]   ended        token of the claim, id, value or "", and the ms for which the value is kept, of each job
-- returns      one text: a line with ms to the next job or to the end of a pause, ms to the end of another's lease (-1:
--              never), the time in ms, and the numbers of ended jobs whose claim had been lost; then of each job a line
--              with its number in the claim, its place, and the lengths of id and record, and those two

local workers, info, running, jobs, ready, scheduled, sequence, signal, paused, settled, minutes, unique, owners = unpack(KEYS)
local worker, claim, limit, lease, information = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mine, attempt = worker .. "/" .. claim, string.format("%.0f/", now) .. worker

-- @include _record
-- @include _alive
-- @include _wake
-- @include _count
-- @include _free
-- @include _keep
-- @include _end
-- @include _place
-- @include _promote
redis.call("ZCARD", running)
redis.call("HLEN", settled)
local left = redis.call("PTTL", paused)  -- -2 when it is not there, -1 without an end
local is_paused = left ~= -2
local marked = redis.call("LLEN", signal)
redis.call("ZCARD", ready)
local coming = next_due()

local lost, done_now = end_jobs(worker, 7, 14)
limit = #lost > 0 and 0 or limit  -- first the caller learns of them
if coming and coming <= now and not is_paused then
    promote()
    coming = next_due()
end

local reply = {""}
local function give(number, place, id, record)
    reply[#reply + 1] = number .. " " .. place .. " " .. #id .. " " .. #record .. "\n"
    reply[#reply + 1], reply[#reply + 2] = id, record
end
-- @include _claim
local taken, more, begun_now, late_now, most_late = claim_jobs()
if done_now + begun_now > 0 then
    count(done_now, 0, begun_now, late_now, most_late)
end
local wait = more and 0 or coming and math.max(0, coming - clock[1] * 1000 - clock[2] / 1000) or -1
if is_paused then
    wait = left < 0 and -1 or math.max(1, left)
end
-- Who takes all it can hold looks away; another one has to watch what is left.
if taken < limit and not more then
    if marked > 0 then redis.call("DEL", signal) end
elseif marked == 0 and wait >= 0 and wait <= 2000 then
    wake()
end
reply[1] = string.format("%.3f %.0f %.0f %s\n", wait, next_lease(), now, table.concat(lost, ","))
return table.concat(reply)
