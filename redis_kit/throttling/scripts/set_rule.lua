#!lua
-- Set the rule of an identity for a limited time. It replaces the rule that the identity has.
--
-- KEYS[1]  state      state of the identity, deleted if its rates change
-- KEYS[2]  standing   string, see decide.lua
-- KEYS[3]  rules      zset: entry -> when the rule ends, ms; at most 10,000
-- KEYS[4]  offenders  zset: entry -> refusals
-- ARGV[1]  now        microseconds for a custom clock; "" for the server's clock
-- ARGV[2]  hash       of the identity, with which its entry begins
-- ARGV[3]  entry      of the identity; "" to use the entry of a list
-- ARGV[4]  rule       "b" for a ban, else as decide.lua reads it
-- ARGV[5]  ttl        ms
-- returns  {when it ends, ms; the entry}

-- @include _entry

local MOST, DAY = 10000, 86400
local rule, ttl, clock = ARGV[4], tonumber(ARGV[5]), redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local start, key_ttl = math.floor(now / 1000), ttl
local old, listed, entry = redis.call("GET", KEYS[2]) or "", nil, ARGV[3]
-- @check_types rules
if string.find(old, "^[xrb]") then
    listed = entry_of(KEYS[3], ARGV[2], entry)
end
if entry == "" then
    entry = listed or entry_of(KEYS[4], ARGV[2]) or ARGV[2] .. " "
end

local kind = string.sub(rule, 1, 1)
if kind == "r" or string.sub(old, 1, 1) == "r" then
    redis.call("DEL", KEYS[1])
end
if kind == "b" then
    -- Earlier automatic bans make the next automatic ban longer, until a day after the end of this one.
    local bans = tonumber(string.match(old, "^[bs] .-(%d+)$")) or 0
    rule = string.format("b %.0f %.0f", now + ttl * 1000, bans)
    key_ttl = ttl + (bans > 0 and DAY * 1000 or 0)
end
redis.call("SET", KEYS[2], rule, "PX", key_ttl)
if listed and listed ~= entry then
    redis.call("ZREM", KEYS[3], listed)
end
redis.call("ZADD", KEYS[3], start + ttl, entry)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", start)
redis.call("ZREMRANGEBYRANK", KEYS[3], 0, -MOST - 1)
redis.call("EXPIRE", KEYS[3], 366 * DAY)
return {kind == "b" and start + ttl or redis.call("PEXPIRETIME", KEYS[2]), entry}
