#!lua
-- Add lines to the log of a job, and keep the latest ones.
--
-- @keys log
-- ARGV[1]  most    lines that are kept
-- ARGV[2]  ttl_ms  to store them
-- ARGV[3...]  lines
-- returns  how many there are

local most = tonumber(ARGV[1])
redis.call("RPUSH", log, unpack(ARGV, 3))
redis.call("LTRIM", log, -most, -1)
redis.call("PEXPIRE", log, ARGV[2])
return redis.call("LLEN", log)
