#!lua flags=no-writes
-- Read how many calls a throttle allowed and refused in 90 days, as they are stored.
--
-- KEYS[1]  counts  hash, see minutes.lua. "d0" to "d90" are blocks of days, like those of hours: the day since 1970, and 9
--                  bytes for each of its hours. An hour whose block of minutes is replaced moves there, so each call is
--                  counted in one place
-- KEYS[2]  latest  counter, see minutes.lua
-- returns  {this hour since 1970, latest, names and values of the hash, alternating}

local hour = math.floor(redis.call("TIME")[1] / 3600)
return {hour, tonumber(redis.call("GET", KEYS[2]) or 0) or 0, redis.call("HGETALL", KEYS[1])}
