#!lua flags=allow-oom
-- Return claimed jobs that were not begun: they are ready again, in their old place, and the attempt does not count.
--
-- KEYS[1]     running  zset of scores 0: worker/claim/place/id
-- KEYS[2]     jobs     hash: id -> record
-- KEYS[3]     ready    zset: id -> place
-- KEYS[4]     signal   list: one element while a worker is to wake up
-- KEYS[5]     paused   string  the queue is paused while it exists: since when, ms
-- KEYS[6]     lanes    hash: id -> its rank in its lane, and that
-- KEYS[7]     parked   zset of scores 0: what waits for a limit
-- ARGV[1...]  members  worker/claim/place/id of each
-- returns     how many were returned

local running, jobs, ready, signal, paused, lanes, parked = unpack(KEYS)

-- @include _record_head
-- @include _record
-- @include _history
-- @include _wake
-- @include _valid_place
-- @include _free_places
-- @check_types running, ready, jobs, signal, lanes, parked

local returned = {}
for _, member in ipairs(ARGV) do
    local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
    local record = redis.call("ZREM", running, member) == 1 and id and redis.call("HGET", jobs, id)
    if record then
        local priority, attempts, crashes, due, payload = read_record(record)
        write_record(id, priority, math.max(0, attempts - 1), crashes, due, remove_attempt(payload))
        redis.call("ZADD", ready, valid_place(place), id)
        returned[#returned + 1] = id
    end
end
if #returned > 0 then
    free_places(returned)
    wake()
end
return #returned
