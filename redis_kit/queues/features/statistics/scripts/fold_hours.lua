#!lua flags=allow-oom
-- Add up the minutes of past hours, each to one entry that lasts for 90 days. An hour that was added before stays.
-- One script: two processes that add up at one time store the same.
--
-- @keys minutes, hours
-- ARGV[1]  most     hours that are added up at once
-- ARGV[2]  kept     hours for which an entry lasts
-- returns  how many hours are left to add up

local most, kept = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = math.floor(redis.call("TIME")[1] / 3600)

-- @check_types minutes, hours
-- @include redis_kit.queues.reports:_each_minute
-- @include _hour_numbers
local last = tonumber(redis.call("HGET", hours, "folded") or 0) or 0
local first = math.max(last < now and last + 1 or 0, now - 71) -- minutes last for 72 hours; the clock may go back
local to = math.min(first + most, now) - 1
if to < first or redis.call("EXISTS", minutes) == 0 then
    return 0
end
for hour = first, to do
    local numbers = hour_numbers(hour)
    if numbers[1] + numbers[2] + numbers[3] > 0 then
        redis.call("HSET", hours, hour, string.format("%.0f %.0f %.0f %.0f %.0f", unpack(numbers)))
    end
end
redis.call("HSET", hours, "folded", to)
redis.call("PEXPIRE", hours, kept * 3600000)
-- Each call removes more of what is older than it adds.
local old = {}
for _, field in ipairs(redis.call("HRANDFIELD", hours, 2 * most + 10)) do
    if field ~= "folded" and (tonumber(field) or 0) <= now - kept then
        old[#old + 1] = field
    end
end
if #old > 0 then redis.call("HDEL", hours, unpack(old)) end
return now - 1 - to
