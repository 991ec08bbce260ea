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
-- KEYS[11]     lanes      hash: id -> its rank in its lane, and that
-- KEYS[12]     limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[13]     parked     zset of scores 0: what waits for a limit
-- KEYS[14...]  reasons    hash: id -> why it died; this and the next one only for an id that may have been used before
-- KEYS[15...]  cancels    hash: id -> 1 for running jobs to cancel
-- ARGV[1]      due        ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]      priority   -100 to 100
-- ARGV[3]      id
-- ARGV[4]      payload
-- ARGV[5]      key
-- ARGV[6]      until      "done", "queued", or how many ms the key's period lasts
-- ARGV[7]      replace    1 to give a job that waits the new payload, priority and time
-- ARGV[8...]   lane       of a job that has one; see _put_in_lane
-- returns      1 when it was added, 2 when it replaced one, 0 when there is one; then the id of the job that there is
--
-- Attempts of a job that is replaced stay counted, or one that always fails would never die.

local jobs, ready, sequence, signal, paused, scheduled, dead, unique, owners, period = unpack(KEYS)
local lanes, limits, parked, reasons, cancels = unpack(KEYS, 11)
local priority, id, payload, key, ending, replaces, lane = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7] == "1", ARGV[8]
-- @include _record_head
-- @include _record
-- @include _unique_holder
-- @include _leave_lane
local holder, died, place_before = redis.call("GET", period) or unique_holder(key), false, nil
local in_lane, any_lanes = nil, lane or redis.call("EXISTS", lanes) == 1
if any_lanes then
    -- @check_types jobs, ready, sequence, scheduled, lanes, limits, parked
end
if reasons and not holder then
    died = redis.call("ZSCORE", dead, id)
    holder = not died and redis.call("HEXISTS", jobs, id) == 1 and id
end
if holder then
    place_before = replaces and redis.call("ZSCORE", ready, holder)
    in_lane = replaces and any_lanes and waits_in_lane(holder)
    if not replaces or not place_before and not in_lane and not redis.call("ZSCORE", scheduled, holder) then
        return {0, holder}
    end
elseif reasons then
    -- @check_types reasons, cancels
end
-- @include _due_of

local due, later = due_of(ARGV[1], redis.call("TIME"))
local to, signals = later and scheduled or ready, redis.call("LLEN", signal)
local wakes = signals == 0 and (lane or not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
if holder or died then
    -- @check_types jobs, ready, scheduled, owners
end
local place = later and due or not lane and place_of(priority, redis.call("INCRBY", sequence, 1))
local function place_job(id)
    if lane then
-- @include _put_in_lane
        put_in_lane(lane, {id}, not later and priority)
    end
    return (later or not lane) and redis.pcall("ZADD", to, place, id)
end
if holder then
    local before, attempts, crashes, _, old = read_record(redis.call("HGET", jobs, holder) or "")
    local line, rest = string.match(payload, "^(~[^\n]*)(\n.*)$")
    payload = line and line .. (string.match(old, "^~[^ \n]*([^\n]*)\n") or "") .. rest or payload
    write_record(holder, priority, attempts, crashes, due, payload)
    local lane_before = any_lanes and lane_of(holder) or nil
    local stays = before == tonumber(priority) and lane_before == (lane and string.match(lane, "^[^\n]*"))
    if later or not stays or not (place_before or in_lane) then
        redis.call("ZREM", ready, holder)
        redis.call("ZREM", scheduled, holder)
        wakes = lane_before and leave_lane(holder) and signals == 0 or wakes
        place_job(holder)
    end
else
    if reasons then
-- @include _free_unique_key
-- @include _forget_earlier
        forget_earlier(id, died)
    end
    local stored, placed = redis.pcall("HSET", jobs, id, new_head(priority, due) .. payload), place_job(id)
    local owned = tonumber(ending) and 0 or redis.pcall("HSET", owners, id, ending .. " " .. key)
    if type(stored) == "table" or type(placed) == "table" or type(owned) == "table" then
-- @include _undo_put
        return undo_put(to, {id}, stored, placed, owned)
    end
    if tonumber(ending) then
        redis.call("SET", period, id, "PX", ending)
    else
        redis.call("HSET", unique, key, id)
    end
end
if wakes then
-- @include _wake
    wake(signals)
end
return {holder and 2 or 1, holder or id}
