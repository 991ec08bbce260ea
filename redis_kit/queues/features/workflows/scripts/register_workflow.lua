#!lua
-- Add a workflow to the list of workflows, and to those that workers look at. The oldest in the list make room.
--
-- @keys listed, checked
-- ARGV[1]  id
-- ARGV[2]  most     how many are listed
-- ARGV[3]  first    ms until the first look
-- returns  nothing

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @check_types listed, checked
redis.call("ZADD", listed, "NX", string.format("%.0f", now), ARGV[1])
redis.call("ZADD", checked, string.format("%.0f", now + ARGV[3]), ARGV[1])
redis.call("ZREMRANGEBYRANK", listed, 0, -1 - ARGV[2])
