#!lua flags=allow-oom
-- Store the result of a job that ended without its worker. A repeat changes nothing.
--
-- @keys endings, result, finished
-- ARGV[1]  id      of the job
-- ARGV[2]  error   stored with the result
-- ARGV[3]  ttl_ms  to store it
-- returns  1 when it was stored, 0 if there is nothing to store, or it can't be

local id = ARGV[1]
local kind, now, record = string.match(redis.call("HGET", endings, id) or "", "^(%l+) (%d+) [^\n]*\n(.*)$")
if not kind then
    return 0
end
-- @include _store_result
local waiting, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
if type(waiting) == "table" or type(list) == "table" then
    return 0  -- something else wrote to these keys
end
local _, begun = string.gsub(string.match(record, "^[^\n]*\n(~[^\n]*)\n") or "", " ", "")
local name = kind == "cancelled" and kind or "error" .. begun
store_result(result, finished, ARGV[3], waiting, "FAILED", record, name, ARGV[2])
redis.call("HDEL", endings, id)
return 1
