#!lua flags=allow-oom
-- Acknowledge jobs, make scheduled jobs ready that are due, and claim ready jobs. A paused queue gives none.
-- One script: workers acknowledge and claim in one round trip, and the parts are includes.
--
-- KEYS[1]      workers    zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]      info       hash: worker -> since when it is alive, ms, and what it reports about itself
-- KEYS[3]      running    zset of scores 0: worker/claim.number/place/id
-- KEYS[4]      jobs       hash: id -> record
-- KEYS[5]      ready      zset: id -> place
-- KEYS[6]      scheduled  zset: id -> when it is due, ms
-- KEYS[7]      sequence   counter of jobs that got ready
-- KEYS[8]      signal     list: one element while a worker is to wake up
-- KEYS[9]      paused     string  the queue is paused while it exists: since when, ms
-- KEYS[10]     settled    hash: worker -> its last answers
-- KEYS[11]     minutes    hash: minute -> minute, jobs done, attempts failed, how late jobs began
-- KEYS[12]     unique     hash: unique key -> id
-- KEYS[13]     owners     hash: id -> until when it has a unique key, and that key
-- KEYS[14...]  results    of each acknowledged job that has one: the hash of the result, and the list for callers that wait for it
-- ARGV[1]      worker
-- ARGV[2]      claim        unique to this call; repeated, it gives the same jobs
-- ARGV[3]      limit        how many jobs, at most
-- ARGV[4]      lease        ms
-- ARGV[5]      information  what a new worker reports about itself
-- ARGV[6]      repeated     1 when the answer to the same call was lost, else 0
-- ARGV[7...]   acks         token of the claim, id, value or "", and the ms to store the value, of each job
-- returns      one text: a line with ms to the next job or to the end of a pause, ms to the end of another's lease (-1:
--              never), the time in ms, and the numbers of acknowledged jobs whose claim was lost; then of each job a
--              line with its number in the claim, its place, and the lengths of id and record, and those two

local workers, info, running, jobs, ready, scheduled, sequence, signal, paused, settled, minutes, unique, owners = unpack(KEYS)
local worker, claim, limit, lease, information = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _count_attempt
-- @include _worker_lease
-- @include _count_minute
-- @include _free_unique_key
-- @include _store_result
-- @include _ack_jobs
-- @include _wake
-- @include _promote
-- @include _claim_jobs
local ends, minute, any_unique = lease_end(), read_minute(), has_unique_keys()
-- @check_types running, settled, ready
local left = redis.call("PTTL", paused)  -- -2 when it is not there, -1 without an end
local is_paused = left ~= -2
local woken = redis.call("LLEN", signal)
local coming = next_due()

local lost, done_now = ack_jobs(worker, 7, 14, any_unique)
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
local claimed, more, begun_now, late_now, latest_now = claim_jobs(limit, ARGV[6] == "1", is_paused, ends, give)
if done_now + begun_now > 0 then
    count_minute(minute, done_now, 0, begun_now, late_now, latest_now)
end
local wait = more and 0 or coming and math.max(0, coming - clock[1] * 1000 - clock[2] / 1000) or -1
if is_paused then
    wait = left < 0 and -1 or math.max(1, left)
end
-- A worker that claims all it can hold does not wait for jobs; another one has to watch what is left.
if claimed < limit and not more then
    if woken > 0 then redis.call("DEL", signal) end
elseif woken == 0 and wait >= 0 and wait <= 2000 then
    wake()
end
reply[1] = string.format("%.3f %.0f %.0f %s\n", wait, next_lease_end(), now, table.concat(lost, ","))
return table.concat(reply)
