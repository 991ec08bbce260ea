#!lua flags=allow-oom
-- End the marks of rows that were written, and return the next ones; become the only writer, or end as such.
--
-- KEYS[1]     announced  zset: announcement of a row -> when it counts as committed, microseconds
-- KEYS[2]     committed  zset: key of a row -> when it is to be written, microseconds
-- KEYS[3]     writer     string: token of the only writer
-- ARGV[1]     token      of the caller
-- ARGV[2]     ttl        of the writer's lease, ms
-- ARGV[3]     limit      number of rows to return at most
-- ARGV[4]     stay       "1" if the caller remains the writer when no row is left
-- ARGV[5]     retry      time until a row that failed is written again, microseconds
-- ARGV[6]     process    of the caller, as announcements name it
-- ARGV[7]     count      number of the arguments about rows that were written
-- ARGV[8...]  marks      key and time of each row that was written, then of each that failed
-- returns     a reason, or "": busy if another caller writes, lost if one does since; whether an unknown row may have
--             changed; then key and time of each row to write
--
-- A row that was marked again since it was read has another time, and is returned again.

local announced, committed, writer, token = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local limit, retry, count = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[7])
-- @check_types announced, committed
local holder = redis.call("GET", writer)
if holder and holder ~= token then
    return {#ARGV > 7 and "lost" or "busy", 0}
end
redis.call("SET", writer, token, "PX", ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local later, present = string.format("%.0f", now + retry), string.format("%.0f", now)
for place = 8, #ARGV, 2 do
    local key = ARGV[place]
    if redis.call("ZSCORE", committed, key) == ARGV[place + 1] then
        if place < 8 + count then
            redis.call("ZREM", committed, key)
        else
            redis.call("ZADD", committed, later, key)
        end
    end
end

local unknown = 0
for _, announcement in ipairs(redis.call("ZRANGEBYSCORE", announced, "-inf", present, "LIMIT", 0, limit)) do
    local key = string.match(announcement, "^%S+ (.*)$")
    redis.call("ZREM", announced, announcement)
    if key == "" then -- the caller's process lives: its own insert failed, or its mark is to come
        unknown = string.sub(announcement, 1, #ARGV[6]) == ARGV[6] and unknown or 1
    else
        redis.call("ZADD", committed, present, key)
    end
end
local marks = redis.call("ZRANGEBYSCORE", committed, "-inf", present, "WITHSCORES", "LIMIT", 0, limit)
if #marks == 0 and ARGV[4] ~= "1" then
    redis.call("UNLINK", writer)
end
return {"", unknown, unpack(marks)}
