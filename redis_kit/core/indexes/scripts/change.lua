#!lua
-- Replace the shape of an index, if it is still the one that the caller knows.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and what it counts
-- KEYS[2]     lease       string: the token of a rebuild
-- KEYS[3...]  keys                   of generations: those to delete, then those that begin
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     known       shape that the caller knows; "" if there is no index
-- ARGV[3]     shape       new shape
-- ARGV[4]     step        of a rebuild: start, switch, forget (a dead one), abandon (one's own); "" for other changes
-- ARGV[5]     token       of the rebuild, which is its generation
-- ARGV[6]     ttl         of the rebuild's lease, ms
-- ARGV[7]     deletions   number of keys to delete
-- ARGV[8]     expiry      of the bitmaps that begin, ms; 0 for none
-- ARGV[9...]  bits        of each key that begins, to be allocated; 0 for other types
-- returns     ""; or a reason: busy, lost, or stale with the stored parameters and shape

local state, lease, parameters, known, step, token = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local deletions, expiry = tonumber(ARGV[7]), tonumber(ARGV[8])
-- @check_types state, lease
-- @include _identity
local identity = read_identity()
local stored = redis.call("HMGET", state, "parameters", "shape", "building")
if (stored[1] or parameters) ~= parameters or (stored[2] or "") ~= known then
    return {"stale", stored[1] or "", stored[2] or ""}
end
local holder = redis.call("GET", lease)
if (step == "start" or step == "forget") and holder and holder ~= token then
    return {"busy"}
elseif step == "switch" and stored[3] ~= token .. " " .. identity then
    return {"lost"} -- adds to the generation may be lost, too
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for place = 3, 2 + deletions do
    redis.call("UNLINK", KEYS[place])
end
for place = 3 + deletions, #KEYS do
    local bits = tonumber(ARGV[6 + place - deletions])
    if bits > 0 then
        redis.call("SETBIT", KEYS[place], bits - 1, 0) -- the last bit first, so memory is allocated once and exactly
    end
    if expiry > 0 then
        redis.call("PEXPIRE", KEYS[place], expiry)
    end
end
redis.call("HSET", state, "parameters", parameters, "shape", ARGV[3])
local live = {}
for id in string.gmatch(ARGV[3], "(%w+):") do
    live[id] = true
    redis.call("HSETNX", state, "since:" .. id, now)
end
for id, count in string.gmatch(known, "(%w+):(%d+)") do
    if not live[id] then
        redis.call("HDEL", state, "since:" .. id)
        for number = 1, tonumber(count) do
            redis.call("HDEL", state, "items:" .. id .. ":" .. number)
        end
    end
end
if step == "start" then
    redis.call("SET", lease, token, "PX", ARGV[6])
    redis.call("HSET", state, "building", token .. " " .. identity)
elseif step ~= "" then
    redis.call("UNLINK", lease)
    redis.call("HDEL", state, "building")
end
if step == "switch" then
    redis.call("HSET", state, "complete", stored[3])
end
return {""}
