#!lua
-- Add a job unless there is one of the same unique key; that one, where it waits, may get what the new one was to have.
-- One script: between the look at the key and the new job, another caller could take the key.
--
-- KEYS[1]      jobs       hash: id -> record
-- KEYS[2]      ready      zset: id -> place
-- KEYS[3]      sequence   counter of jobs that got ready
-- KEYS[4]      signal     list: one element while a worker is to wake up
-- KEYS[5]      paused     string  the queue is paused while it exists: since when, ms
-- KEYS[6]      scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[7]      dead       zset: id -> when it died, ms
-- KEYS[8]      unique     hash: unique key -> id
-- KEYS[9]      owners     hash: id -> until when it has a unique key, and that key
-- KEYS[10]     period     string  id of the job of this key's period, which lasts while it exists
-- KEYS[11...]  reasons    hash: id -> why it died; this and the next one only for an id that may have been used before
-- KEYS[12...]  cancels    hash: id -> 1 for running jobs to cancel
-- ARGV[1]      due        ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]      priority   -100 to 100
-- ARGV[3]      id
-- ARGV[4]      payload
-- ARGV[5]      key
-- ARGV[6]      until      "done", "queued", or how many ms the key's period lasts
-- ARGV[7]      replace    1 to give a job that waits the new payload, priority and time
-- returns      1 when it was added, 2 when it replaced one, 0 when there is one; then the id of the job that there is
--
-- Attempts of a job that is replaced stay counted, or one that always fails would never die.

local jobs, ready, sequence, signal, paused, scheduled, dead, unique, owners, period, reasons, cancels = unpack(KEYS)
local priority, id, payload, key, ending, replaces = tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7] == "1"
-- @include _record_head
-- @include _record
-- @include _unique_holder
local holder, died, place_before = redis.call("GET", period) or unique_holder(key), false, nil
if reasons and not holder then
    died = redis.call("ZSCORE", dead, id)
    holder = not died and redis.call("HEXISTS", jobs, id) == 1 and id
end
if holder then
    place_before = replaces and redis.call("ZSCORE", ready, holder)
    if not replaces or not place_before and not redis.call("ZSCORE", scheduled, holder) then
        return {0, holder}
    end
elseif reasons then
    -- @check_types reasons, cancels
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)
local due = string.sub(ARGV[1], 1, 1) == "+" and now + ARGV[1] or tonumber(ARGV[1])
local later, signals = due > now, redis.call("LLEN", signal)
local wakes = signals == 0 and (not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
-- @check_types jobs, ready, scheduled, owners
local last, attempts, crashes, before, old, _ = not later and redis.call("INCRBY", sequence, 1), 0, 0
if holder then
    id, before, attempts, crashes, _, old = holder, read_record(redis.call("HGET", jobs, holder) or "")
    local line, rest = string.match(payload, "^(~[^\n]*)(\n.*)$")
    payload = line and line .. (string.match(old, "^~[^ \n]*([^\n]*)\n") or "") .. rest or payload
    redis.call("ZREM", later and ready or scheduled, id)
elseif died then
-- @include _free_unique_key
    free_unique_key(id, has_unique_keys())
    redis.call("ZREM", dead, id)
    redis.call("HDEL", reasons, id)
end
if reasons and not holder then redis.call("HDEL", cancels, id) end  -- that was an earlier job of this id
write_record(id, priority, attempts, crashes, math.max(now, due), payload)
if later then
    redis.call("ZADD", scheduled, due, id)
elseif not place_before or before ~= priority then
    redis.call("ZADD", ready, place_of(priority, last), id)
end
if not holder and tonumber(ending) then
    redis.call("SET", period, id, "PX", ending)
elseif not holder then
    redis.call("HSET", unique, key, id)
    redis.call("HSET", owners, id, ending .. " " .. key)
end
if wakes then
-- @include _wake
    wake(signals)
end
return {holder and 2 or 1, id}
