#!lua
-- Add a job unless there is one of the same unique key; that one, where it waits, may get what the new one was to have.
-- One script: between the look at the key and the new job, another caller could take the key.
--
-- KEYS[1]   jobs       hash: id -> record
-- KEYS[2]   ready      zset: id -> place
-- KEYS[3]   scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]   dead       zset: id -> when it died, ms
-- KEYS[5]   reasons    hash: id -> why it died
-- KEYS[6]   sequence   counter of jobs that got ready
-- KEYS[7]   signal     list: one element while a worker is to wake up
-- KEYS[8]   paused     string  the queue is paused while it exists: since when, ms
-- KEYS[9]   unique     hash: unique key -> id
-- KEYS[10]  owners     hash: id -> until when it has a unique key, and that key
-- KEYS[11]  cancels    hash: id -> 1, of jobs that run and are not to
-- KEYS[12]  period     string  id of the job of this key's period, which lasts while it exists
-- ARGV[1]   delay      ms from now
-- ARGV[2]   due        ms on the server's clock; 0 to go by the delay
-- ARGV[3]   priority   -100 to 100
-- ARGV[4]   id
-- ARGV[5]   payload
-- ARGV[6]   key
-- ARGV[7]   until      "done", "queued", or how many ms the key's period lasts
-- ARGV[8]   replace    1 to give a job that waits the new payload, priority and time
-- returns   1 when it was added, 2 when it replaced one, 0 when there is one; then the id of the job that there is
--
-- Attempts of a job that is replaced stay counted, or one that always fails would never die.

local jobs, ready, scheduled, dead, reasons, sequence, signal, paused, unique, owners, cancels, period = unpack(KEYS)
local delay, due, priority = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local id, payload, key, ending, replaces = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] == "1"
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)
due = due > 0 and due or now + delay

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _free_unique_key
-- @include _unique_holder
local any_unique = has_unique_keys()
local later = due > now
local first = later and redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
local holder, died = redis.call("GET", period) or unique_holder(key), redis.call("ZSCORE", dead, id)
holder = holder or not died and redis.call("HEXISTS", jobs, id) == 1 and id
local place_before = redis.call("ZSCORE", ready, holder or id)
local waits = holder and (place_before or redis.call("ZSCORE", scheduled, holder))
-- @check_types reasons, cancels, scheduled, signal
if holder and not (waits and replaces) then
    return {0, holder}
end

local last, attempts, crashes, before, old, _ = redis.call("INCRBY", sequence, 1), 0, 0
if holder then
    id, before, attempts, crashes, _, old = holder, read_record(redis.call("HGET", jobs, holder) or "")
    local line, rest = string.match(payload, "^(~[^\n]*)(\n.*)$")
    payload = line and line .. (string.match(old, "^~[^ \n]*([^\n]*)\n") or "") .. rest or payload
elseif died then
    redis.call("ZREM", dead, id)
    redis.call("HDEL", reasons, id)
    free_unique_key(id, any_unique)
end
if not holder then
    redis.call("HDEL", cancels, id)  -- that was an earlier job of this id
end
write_record(id, priority, attempts, crashes, math.max(now, due), payload)
redis.call("ZREM", later and ready or scheduled, id)
if later then
    redis.call("ZADD", scheduled, string.format("%.0f", due), id)
elseif not place_before or before ~= priority then
    redis.call("ZADD", ready, place_of(priority, last), id)
end
if not holder and tonumber(ending) then
    redis.call("SET", period, id, "PX", ending)
elseif not holder then
    redis.call("HSET", unique, key, id)
    redis.call("HSET", owners, id, ending .. " " .. key)
end
if not later or not first or due < tonumber(first) then
    wake()
end
return {holder and 2 or 1, id}
