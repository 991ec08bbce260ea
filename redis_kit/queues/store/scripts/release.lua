#!lua flags=allow-oom
-- Give back claimed jobs that were not begun: they are ready again, in their old place, and the attempt does not count.
--
-- KEYS[1]     running  zset of scores 0: worker/claim.number/place/id
-- KEYS[2]     jobs     hash: id -> record
-- KEYS[3]     ready    zset: id -> place
-- KEYS[4]     signal   list: one element while a worker should look
-- KEYS[5]     paused   the queue is paused while it exists: since when, ms
-- ARGV[1...]  members  worker/claim.number/place/id of each
-- returns     how many were given back

local running, jobs, ready, signal, paused = unpack(KEYS)

-- @include _record
-- @include _wake
-- @include _sound
for _, key in ipairs({running, ready}) do redis.call("ZCARD", key) end
redis.call("HLEN", jobs)
redis.call("LLEN", signal)

local given = 0
for _, member in ipairs(ARGV) do
    local score, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
    local record = redis.call("ZREM", running, member) == 1 and id and redis.call("HGET", jobs, id)
    if record then
        local priority, attempts, crashes, due, payload = read(record)
        write(id, priority, math.max(0, attempts - 1), crashes, due, untold(payload))
        redis.call("ZADD", ready, sound(score), id)
        given = given + 1
    end
end
if given > 0 then
    wake()
end
return given
