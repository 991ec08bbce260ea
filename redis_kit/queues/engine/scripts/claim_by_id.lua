#!lua flags=allow-oom
-- Claim one job by its id, in the name of a worker of another system that was told to run it.
-- One script: between the look at the job and the claim, another worker could take it.
--
-- @keys sequence, workers, info, answers
-- ARGV[1]  worker
-- ARGV[2]  claim        unique to this call; repeated, it gives the same job
-- ARGV[3]  id           of the job
-- ARGV[4]  version      "<attempts> <due>" when it was handed over: a job that was tried or changed since has another one
-- ARGV[5]  token        of the claim with which it was handed over, and which may still hold
-- ARGV[6]  lease        ms
-- ARGV[7]  information  what a new worker reports about itself
-- returns  its place, its record, and the time in s and us; nothing if it runs elsewhere, has ended, or has changed

local worker, owner, id, version = ARGV[1], ARGV[1] .. "/" .. ARGV[2], ARGV[3], ARGV[4]
local member, lease, information = ARGV[5] .. "/" .. ARGV[3], tonumber(ARGV[6]), ARGV[7]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _worker_lease
-- @include _features
-- @include _move with any
local left = (redis.call("ZSCORE", workers, worker) or 0) - now
local record = redis.call("HGET", jobs, id)
-- @check_types running, ready, scheduled, sequence, info, answers
-- @hook on_check
if not record then
    return {}
end
local before = redis.call("ZRANGEBYLEX", running, "[" .. owner .. "/", "(" .. owner .. "0", "LIMIT", 0, 1)[1]
if before then
    return {string.match(before, "^[^/]+/[^/]+/([^/]+)/"), record, clock[1], clock[2]}
end

local place, held = redis.call("ZSCORE", ready, id), redis.call("ZSCORE", running, member)
if held then
    place, record = string.match(member, "^[^/]+/[^/]+/([^/]+)/"), uncounted(record)
end
local priority, attempts, crashes, due, payload = read_record(record)
if not place and redis.call("ZSCORE", scheduled, id) then
    place = string.format("%.0f", place_of(priority, redis.call("INCRBY", sequence, 1)))
end
if not place or string.format("%.0f %.0f", attempts, due) ~= version then
    return {}
end
if left <= lease * 0.95 or left > lease or left % 1 > 0 then
    renew_lease(left)
end
payload = string.gsub(payload, "^(~[^\n]*)", "%1" .. string.format(" %.0f/", now) .. string.gsub(worker, "%%", "%%%%"), 1)
record = record_head(priority, attempts + 1, crashes, due) .. payload
local claim = owner .. "/" .. place .. "/" .. id
move(id, held and "running" or "scheduled", "running", {member = member, claim = claim, record = record, lane = "away"})
-- @hook on_away(id)
return {place, record, clock[1], clock[2]}
