#!lua flags=no-writes
-- Return what was counted in each of the last hours, this one among them.
--
-- @keys minutes, hours
-- ARGV[1]  count    hours
-- returns  the present hour; of each hour, the earliest first: jobs done, attempts failed, attempts begun, ms by which
--          these were late, together and at most

local now = math.floor(redis.call("TIME")[1] / 3600)

-- @include redis_kit.queues.reports:_each_minute
-- @include _hour_numbers
local fields = {}
for hour = now - ARGV[1] + 1, now do fields[#fields + 1] = hour end
local reply, folded = {now}, tonumber(redis.call("HGET", hours, "folded") or 0) or 0
folded = folded < now and folded or 0 -- the clock was set back
for first = 1, #fields, 1000 do
    local part = {unpack(fields, first, math.min(first + 999, #fields))}
    for at, text in ipairs(redis.call("HMGET", hours, unpack(part))) do
        local numbers
        if text then
            numbers = {string.match(text, "^(%d+) (%d+) (%d+) (%d+) (%d+)$")}
        elseif part[at] > math.max(folded, now - 72) then
            numbers = hour_numbers(part[at])
        end
        local place = #reply
        for offset = 1, 5 do
            reply[place + offset] = numbers and math.min(MOST, tonumber(numbers[offset] or 0)) or 0
        end
    end
end
return reply
