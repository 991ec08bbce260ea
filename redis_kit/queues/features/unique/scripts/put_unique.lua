#!lua
-- Add a job unless there is one of the same unique key; that one, where it waits, may get what the new one was to have.
-- One script: between the look at the key and the new job, another caller could take the key.
--
-- @keys sequence, signal, period
-- ARGV[1]      due        ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]      priority   -100 to 100
-- ARGV[3]      id
-- ARGV[4]      payload
-- ARGV[5]      key
-- ARGV[6]      until      "done", "queued", or how many ms the key's period lasts
-- ARGV[7]      replace    1 to give a job that waits the new payload, priority and time
-- ARGV[8]      used       1 if the id may have been used before
-- ARGV[9]      lane       see on_put of limits; "" without one
-- returns      1 when it was added, 2 when it replaced one, 0 when there is one; then the id of the job that there is
--
-- Attempts of a job that is replaced stay counted, or one that always fails would never die.

local priority, id, payload, key, ending = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local replaces, is_used, lane = ARGV[7] == "1", ARGV[8] == "1", ARGV[9] ~= "" and ARGV[9]
-- @include redis_kit.queues.engine:_features
-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
-- @include _holder
-- @include redis_kit.queues.engine:_state_of
-- @include redis_kit.queues.engine:_move with any, delay
-- @include redis_kit.queues.engine:_due_of
-- @include redis_kit.queues.engine:_wake
local holder, state = redis.call("GET", period) or unique_holder(key), nil
-- @check_types jobs, ready, sequence, scheduled, dead, reasons
-- @hook on_check
if is_used and not holder and redis.call("HEXISTS", jobs, id) == 1 then
    state = state_of(id)
    holder = state ~= "dead" and id
end
if holder then
    state = redis.call("HEXISTS", jobs, holder) == 1 and state_of(holder)
    if not replaces or state ~= "ready" and state ~= "scheduled" then return {0, holder} end
end

local due, later = due_of(ARGV[1], redis.call("TIME"))
local signals = redis.call("LLEN", signal)
local wakes = lane or not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0
local function place_job(id, from, record)
    local how = {record = record, due = later and tonumber(due), leaves_lane = true}
    if later or not lane then
        how.place = not later and place_of(priority, redis.call("INCRBY", sequence, 1))
        wakes = move(id, from, later and "scheduled" or "ready", how) or wakes
    else
        wakes = move(id, from, "parked", how) or wakes
    end
    if lane then
        local ids = {id}
        -- @hook on_put(lane, ids, priority, later)
    end
end
if holder then
    local before, attempts, crashes, _, old = read_record(redis.call("HGET", jobs, holder) or "")
    local line, rest = string.match(payload, "^(~[^\n]*)(\n.*)$")
    payload = line and line .. (string.match(old, "^~[^ \n]*([^\n]*)\n") or "") .. rest or payload
    local record = record_head(priority, attempts, crashes, due) .. payload
    local own = false
    -- @hook on_lane(holder, own)
    local stays = before == tonumber(priority) and (own or false) == (lane and string.match(lane, "^[^\n]*"))
    if later or not stays or state ~= "ready" then
        place_job(holder, state, record)
    else
        redis.call("HSET", jobs, holder, record)
    end
else
    if state == "dead" then move(id, "dead", "gone", {}) end
    local ids, may_start = {id}, false
    -- @hook on_end(ids, may_start)
    -- @hook on_new(id)
    place_job(id, nil, new_head(priority, due) .. payload)
    -- @hook on_hold(key, ending, id, period)
end
if wakes then wake(signals) end
return {holder and 2 or 1, holder or id}
