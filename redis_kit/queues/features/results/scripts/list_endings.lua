#!lua flags=no-writes
-- List jobs that ended without their worker, and whose results are to be stored, at most 100.
--
-- @keys endings
-- returns  for each: id, and why: "cancelled" or "dead", when in ms, and the reason

local reply = {}
for _, id in ipairs(redis.call("HRANDFIELD", endings, 100)) do
    reply[#reply + 1], reply[#reply + 2] = id, string.match(redis.call("HGET", endings, id), "^[^\n]*")
end
return reply
