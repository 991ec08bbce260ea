#!lua flags=no-writes
-- Return what is stored about a job beyond its state: the result of its call, its unique key, and whether it is cancelled.
--
-- @keys jobs, crashed
-- ARGV[1]  id
-- ARGV[2]  errors   how many, at most: those of the latest attempts
-- ARGV[3]  bytes    longest text of a result that is returned; "" takes the place of a longer one
-- returns  its record, or that which it had at its end, "" without one; the result's status, when it ended in ms, value,
--          progress, what cancelled it, and how often, when and why it snoozed, each "" without one; until when it has a unique key, and that key, or "";
--          1 when it is to be cancelled; what is stored about its crashes, or ""; then the number of each attempt that failed and its error, the latest first

local id, most, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local reply = {redis.call("HGET", jobs, id) or "", "", "", "", "", "", "", "", 0, redis.call("HGET", crashed, id) or ""}
-- @hook on_details(id, reply, most, bytes)
return reply
