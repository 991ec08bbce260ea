#!lua flags=allow-oom
-- Acknowledge jobs, and store their results, if any.
-- One script: a job must not be gone before its result is stored.
--
-- KEYS[1]     running  zset of scores 0: worker/claim/place/id
-- KEYS[2]     jobs     hash: id -> record
-- KEYS[3]     answers  list: the last answers to the worker
-- KEYS[4]     workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[5]     minutes  hash: 4 * minute + what -> how many
-- KEYS[6]     owners   hash: id -> until when it has a unique key, and that key
-- KEYS[7]     lanes    hash: id -> its rank in its lane, and that
-- KEYS[8...]  unique   hash: unique key -> id; this and the next three only if the script asked for them
-- KEYS[9...]  signal   list: one element while a worker is to wake up
-- KEYS[10...] paused   string  the queue is paused while it exists: since when, ms
-- KEYS[11...] parked   zset of scores 0: what waits for a limit
-- KEYS[12...] results  of each job that has one: the hash of the result, and the list for callers that wait for it
-- KEYS[13...] done     stream: the latest done jobs; twice, if the queue keeps any
-- ARGV[1]     worker
-- ARGV[2]     lease    ms
-- ARGV[3...]  acks     how many jobs; worker/claim/place/id of each; the id of each; then the number of each that has a
--                      result, from 1, that result, and the ms to store it; then for the stream 0, a line about each, and
--                      how many jobs it keeps
-- returns     the numbers of those whose claim was lost, from 1; nil if no claim was; or -1: nothing was done, as there are
--             unique keys or lanes, and their keys are missing

local running, jobs, answers, workers, minutes, owners, lanes = unpack(KEYS)
local unique, signal, paused, parked
local worker, lease, to_store = ARGV[1], tonumber(ARGV[2]), 4 + 2 * ARGV[3]
local clock = redis.call("TIME")
local now, first_field = clock[1] * 1000 + math.floor(clock[2] / 1000), math.floor(clock[1] / 60) * 4

-- @include _count_minute
-- @include _ack_jobs
local left, any_unique, any_lanes = (redis.call("ZSCORE", workers, worker) or 0) - now, false, false
local others = redis.call("EXISTS", owners, lanes)
if others > 0 then
-- @include _rare_keys
    if not has_rare_keys(7, to_store) then return -1 end
    unique, signal, paused, parked = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
    any_lanes = redis.call("HLEN", lanes) > 0
    any_unique = (others == 2 or not any_lanes) and redis.call("HLEN", owners) > 0
    if any_unique or any_lanes then
        -- @check_types unique, signal, parked
    end
end
local lost, done, sum, list, at_ids, records = ack_jobs(3)
if records then
-- @include _store_result
-- @include _store_results
    store_results(to_store, records)
end
if any_unique and done > 0 then
-- @include _free_unique_key
    for at = at_ids, at_ids + done - 1 do free_unique_key(list[at], true) end
end
if any_lanes and done > 0 then
-- @include _wake
-- @include _free_places
    if leave_lanes({unpack(list, at_ids, at_ids + done - 1)}) > 0 then wake() end
end
if sum == done then
-- @include _begin_minute
    begin_minute()
end
if left < lease * 0.95 then
-- @include _sign_of_life
    sign_of_life(left)
end
return lost
