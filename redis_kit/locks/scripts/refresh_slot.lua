#!lua flags=allow-oom
-- Make the lease of slots longer, or set how long it still lasts. One that was lost is not taken again.
--
-- KEYS[1]     live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[2...]  levels   four keys of each, the outermost first: holders, about, weights, limits
-- ARGV[1]     token    of the lease
-- ARGV[2]     more     ms
-- ARGV[3]     how      0: so much is added; 1: so much is left from now on; 2: at least so much is left
-- ARGV[4]     most     a lease may last, ms
-- ARGV[5...]  levels   "<limit> <kind and name>" of each
-- returns     ms that the lease lasts now, 0 when this token holds no slot

local token = ARGV[1]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @include _last_until

local ends = tonumber(redis.call("ZSCORE", KEYS[#KEYS - 3], token) or 0)
if ends <= now then
    return 0
end
local left, more = ends - now, tonumber(ARGV[2])
local wanted = { ["0"] = left + more, ["1"] = more, ["2"] = math.max(left, more) }
local lasting = math.min(wanted[ARGV[3]], tonumber(ARGV[4]))
for at = 2, #KEYS, 4 do
    local limit, member = string.match(ARGV[(at + 18) / 4], "^(%d+) (.*)$")
    last_until(now + lasting, false, limit, KEYS[1], member, unpack(KEYS, at, at + 3))
end
return lasting
