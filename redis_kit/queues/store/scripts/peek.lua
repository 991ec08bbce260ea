#!lua flags=no-writes
-- Return jobs of one state: ready ones in the order of claims, after them those that wait for a limit, scheduled ones by due
-- time, running ones by worker, and dead ones from the latest. Fewer than the limit where they are large: a script must not
-- keep the server for long.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  dead       zset: id -> when it died, ms
-- KEYS[5]  reasons    hash: id -> why it died
-- KEYS[6]  running    zset of scores 0: worker/claim/place/id
-- KEYS[7]  limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[8]  parked     zset of scores 0: what waits for a limit
-- ARGV[1]  state
-- ARGV[2]  offset     how many are passed over
-- ARGV[3]  limit      how many, at most
-- ARGV[4]  cut        bytes of a record that are returned; a longer one is without its attempts but the last
-- ARGV[5]  bytes      of records that are read, at most, but for the last
-- returns  id, record, when it died or is to start in ms, or "", why or for which limit a ready job waits, or "", worker or "" of each

local jobs, ready, scheduled, dead, reasons, running, limits, parked = unpack(KEYS)
local state, offset, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local cut, bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local key = ({ready = ready, scheduled = scheduled, dead = dead, running = running})[state]
local range = state == "dead" and "ZREVRANGE" or "ZRANGE"
-- @include _awaited_limit
local awaited = {}
local entries = redis.call(range, key, offset, offset + limit - 1, "WITHSCORES")
if state == "ready" and #entries < 2 * limit then
    local from = math.max(0, offset - redis.call("ZCARD", ready))
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", from, limit - #entries / 2)) do
        local lane, id = string.match(member, "^job\n([^\n]*)\n.*\n(.*)$")
        entries[#entries + 1], entries[#entries + 2] = id or member, ""
        awaited[id or member] = lane and awaited_limit(lane)
    end
end

local reply = {}
for at = 1, #entries, 2 do
    local id, moment, reason, worker = entries[at], "", awaited[entries[at]] or "", ""
    if state == "dead" then
        moment, reason = entries[at + 1], redis.call("HGET", reasons, id) or ""
    elseif state == "scheduled" then
        moment = entries[at + 1]
    elseif state == "running" then
        worker, id = string.match(id, "^([^/]+)/[^/]+/[^/]+/(.*)$")
    end
    local record = id and redis.call("HGET", jobs, id) or ""
    local size = #record
    if size > cut then record = string.gsub(record, "^([^\n]*\n~[^ \n]*)[^\n]*( [^ \n]*\n)", "%1%2") end
    for _, item in ipairs({id or entries[at], string.sub(record, 1, cut), moment, reason, worker or ""}) do
        table.insert(reply, item)
    end
    bytes = bytes - size
    if bytes <= 0 then
        break
    end
end
return reply
