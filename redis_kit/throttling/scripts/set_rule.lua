#!lua
-- Give a caller a rule for a while, in place of the one that it has.
--
-- KEYS[1]  state      state of the caller, forgotten where its rates change
-- KEYS[2]  standing   string, see decide.lua
-- KEYS[3]  rules      zset: caller -> when its rule ends, ms; at most 10,000
-- KEYS[4]  offenders  zset: caller -> refusals
-- ARGV[1]  now        microseconds, for a clock of one's own; "" for the server's
-- ARGV[2]  who        hash of the caller, with which its label begins
-- ARGV[3]  label      the caller as ``rules`` is to name it; "" for as a list names it already
-- ARGV[4]  rule       "b" for a ban, else what decide.lua reads
-- ARGV[5]  lasting    ms
-- returns  {when it ends, ms; the label}

-- @include _labelled

local MOST, DAY = 10000, 86400
local rule, lasting, clock = ARGV[4], tonumber(ARGV[5]), redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local start, kept = math.floor(now / 1000), lasting
local old, listed, label = redis.call("GET", KEYS[2]) or "", labelled(KEYS[3], ARGV[2]), ARGV[3]
if label == "" then
    label = listed or labelled(KEYS[4], ARGV[2]) or ARGV[2] .. " "
end

local kind = string.sub(rule, 1, 1)
if kind == "r" or string.sub(old, 1, 1) == "r" then
    redis.call("DEL", KEYS[1])
end
if kind == "b" then
    -- The bans that the throttle itself imposed before make its next one longer, for a day after the end of this.
    local bans = tonumber(string.match(old, "^[bs] .-(%d+)$")) or 0
    rule = string.format("b %.0f %.0f", now + lasting * 1000, bans)
    kept = lasting + (bans > 0 and DAY * 1000 or 0)
end
redis.call("SET", KEYS[2], rule, "PX", kept)
if listed and listed ~= label then
    redis.call("ZREM", KEYS[3], listed)
end
redis.call("ZADD", KEYS[3], start + lasting, label)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", start)
redis.call("ZREMRANGEBYRANK", KEYS[3], 0, -MOST - 1)
redis.call("EXPIRE", KEYS[3], 366 * DAY)
return {kind == "b" and start + lasting or redis.call("PEXPIRETIME", KEYS[2]), label}
