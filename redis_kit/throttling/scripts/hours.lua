#!lua flags=no-writes
-- Read how many calls a throttle allowed and refused in 90 days, as they are stored.
--
-- KEYS[1]  minutes  string, see minutes.lua. The minutes are followed by a cycle of 2160 hours, each with two numbers like
--                   those of a minute, but the lower 40 bits are the count. A minute that replaces another one moves its
--                   calls to their hour, so each call is counted in one place
-- KEYS[2]  latest   counter, see minutes.lua
-- returns  {this hour since 1970, latest, numbers of all minutes and hours; zeros at the end may be missing}

local hour = math.floor(redis.call("TIME")[1] / 3600)
local numbers = redis.call("GETRANGE", KEYS[1], 0, (4320 + 2160) * 16 - 1)
return {hour, tonumber(redis.call("GET", KEYS[2]) or 0) or 0, numbers}
