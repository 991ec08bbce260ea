#!lua flags=no-writes
-- Return the limits of a queue that the code or somebody set, at most 100, and how far they are used.
--
-- @keys limits, parked
-- ARGV[1]  after   name after which the list begins, "" for the first
-- returns  the time in ms; then of each its name, what was set, what the code says, "" for each that there is not, how many
--          jobs run, how many lanes wait for it, and in which ms it allows the next start, 0 for now
--
-- A limit for each value of an argument is listed under its name with a * for the value, and counts the jobs of all values.

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function count(kind, name)
    local first = string.match(name, "^([^*]*=)%*")
    local range = kind .. "\n" .. (first or name .. "\n")
    local last = string.sub(range, 1, -2) .. (first and ">" or "\11")
    return redis.call("ZLEXCOUNT", parked, "[" .. range, "(" .. last)
end
local reply = {now}
for _, rule in ipairs(redis.call("ZRANGEBYLEX", parked, "(rule\n" .. ARGV[1], "(rule\11", "LIMIT", 0, 100)) do
    local name = string.match(rule, "^rule\n(.*)$")
    local set, code, start = unpack(redis.call("HMGET", limits, "set " .. name, "code " .. name, "next " .. name))
    local at = math.floor((tonumber(start) or 0) / 1000)
    if set or code then
        for _, item in ipairs({name, set or "", code or "", count("run", name), count("turn", name), at > now and at or 0}) do
            reply[#reply + 1] = item
        end
    end
end
return reply
