#!lua flags=allow-oom
-- Acknowledge jobs, make scheduled jobs ready that are due, and claim ready jobs. A paused queue gives none.
-- One script: workers acknowledge and claim in one round trip, and the parts are includes.
--
-- KEYS[1]      workers    zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]      info       hash: worker -> since when it is alive, ms, and what it reports about itself
-- KEYS[3]      running    zset of scores 0: worker/claim/place/id
-- KEYS[4]      jobs       hash: id -> record
-- KEYS[5]      ready      zset: id -> place
-- KEYS[6]      scheduled  zset: id -> when it is due, ms
-- KEYS[7]      sequence   counter of jobs that got ready
-- KEYS[8]      signal     list: one element while a worker is to wake up
-- KEYS[9]      paused     string  the queue is paused while it exists: since when, ms
-- KEYS[10]     answers    list: the last answers to the worker
-- KEYS[11]     minutes    hash: 4 * minute + what -> how many
-- KEYS[12]     owners     hash: id -> until when it has a unique key, and that key
-- KEYS[13]     repeats    zset: worker/claim of a repeated call -> when it was repeated, ms
-- KEYS[14]     lanes      hash: id -> its rank in its lane, and that
-- KEYS[15...]  unique     hash: unique key -> id; this and the next three only if the script asked for them
-- KEYS[16...]  limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[17...]  parked     zset of scores 0: what waits for a limit
-- KEYS[18...]  results    of each acknowledged job that has one: the hash of the result, and the list for callers that wait for it
-- KEYS[18...]  done     stream: the latest done jobs; twice, if the queue keeps any
-- ARGV[1]      worker
-- ARGV[2]      claim        unique to this call; repeated, it gives the same jobs
-- ARGV[3]      limit        how many jobs, at most
-- ARGV[4]      lease        ms
-- ARGV[5]      information  what a new worker reports about itself
-- ARGV[6]      repeated     1 when the answer to the same call was lost, else 0
-- ARGV[7...]   acks         how many; worker/claim/place/id of each; the ids; the number, result and ms to store of those with one;
--                            for the stream of done jobs 0, a line about each, and how many it keeps
-- returns      one text: a line with ms to the next job or the end of a pause, to the end of another's lease (-1: never, or
--              it was not read), the time in s and us, and the numbers of acknowledged jobs whose claim was lost; then of
--              each job the lengths of place, id and record in 1, 4 and 4 bytes, and these three; or -1: nothing was done, as
--              there are unique keys or lanes, and their keys are missing

local workers, info, running, jobs, ready, scheduled, sequence, signal, paused, answers, minutes = unpack(KEYS)
local owners, repeats, lanes, unique, limits, parked = KEYS[12], KEYS[13], KEYS[14]
local worker, limit, lease = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local information, owner, repeated, acks = ARGV[5], worker .. "/" .. ARGV[2], ARGV[6] == "1", tonumber(ARGV[7])
local clock = redis.call("TIME")
local now, first_field = clock[1] * 1000 + math.floor(clock[2] / 1000), math.floor(clock[1] / 60) * 4
-- Rare parts are included where they are needed, as the definition of a function takes time.
local left, woken, waiting = (redis.call("ZSCORE", workers, worker) or 0) - now, redis.call("LLEN", signal), redis.call("ZCARD", ready)
local is_short = left <= lease * 0.95 or left > lease or left % 1 > 0
local pause, claimed, next_end, reply = -2, 0, -1, {"", "", "", "", ""}
local coming, any_unique, was_repeated, any_lanes, lost, done, sum, list, at_ids, records, is_new, chosen
local others = redis.call("EXISTS", scheduled, paused, owners, repeats, lanes)  -- most queues have none of them
if others > 0 then
-- @include _read_others
-- @include _rare_keys
    coming, pause, any_unique, was_repeated, any_lanes = read_others(others)
    if any_unique or any_lanes then
        if not has_rare_keys(14, 8 + 2 * acks) then return -1 end
        unique, limits, parked = KEYS[15], KEYS[16], KEYS[17]
        -- @check_types unique, limits
    end
    limit = was_repeated and not repeated and 0 or limit  -- this comes in late
end
if any_lanes then
    -- @check_types parked, running, jobs, minutes, sequence
end
local is_due = coming and coming <= now and pause == -2
if is_short or repeated or is_due then
    -- @check_types running, jobs, answers, minutes, info, sequence, repeats
-- @include _worker_lease
-- @include _record_head
-- @include _record
-- @include _ready_place
-- @include _promote
    if is_short then renew_lease(left) end  -- also one that ends too late: the clock went back
    if is_due then coming, waiting = promote(any_lanes and ready_place) end
end
if acks > 0 then
-- @include _count_minute
-- @include _ack_jobs
    lost, done, sum, list, at_ids, records = ack_jobs(7)
    if records then
-- @include _store_result
-- @include _store_results
        store_results(8 + 2 * acks, records)
    end
    if done > 0 and (any_unique or any_lanes) then
-- @include _free_unique_key
-- @include _free_places
        for at = at_ids, at_ids + done - 1 do free_unique_key(list[at], any_unique) end
        if any_lanes then leave_lanes({unpack(list, at_ids, at_ids + done - 1)}) end
    end
end
if repeated then
-- @include _repeat_claim
    limit = repeat_claim(reply) and 0 or limit
end
if any_lanes then
-- @include _limits
-- @include _lanes
-- @include _choose_jobs
    chosen, coming, waiting = choose_jobs(pause == -2 and not lost and limit or 0)
end
if limit > 0 and waiting > 0 and pause == -2 and not lost then  -- first the caller learns of lost ones
-- @include _take_ready
    claimed, is_new = take_ready(limit, worker, owner, reply, chosen)
end
if is_new or done and sum == done then
-- @include _begin_minute
    begin_minute()
end
local more = waiting > claimed and pause == -2
local wait = more and 0 or coming and math.max(0, coming - clock[1] * 1000 - clock[2] / 1000) or -1
if pause ~= -2 then wait = pause < 0 and -1 or math.max(1, pause) end
-- A worker that claims all it can hold does not wait for jobs; another one has to watch what is left.
if claimed < limit and not more then
    if woken > 0 then redis.call("DEL", signal) end
elseif woken == 0 and wait >= 0 and wait <= 2000 then
-- @include _wake
    wake(woken)
end
if claimed == 0 or is_short then
-- @include _next_lease_end
    next_end = next_lease_end()
end
local first = (wait == 0 and "0" or string.format("%.3f", wait)) .. " " .. next_end .. " " .. clock[1] .. " " .. clock[2]
reply[1] = first .. " " .. (lost and table.concat(lost, ",") or "") .. "\n"
return table.concat(reply)
