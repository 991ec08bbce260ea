-- Which features a queue uses: the sum of 1 for lanes, 2 unique keys, 4 marks of jobs to cancel, 8 scheduled jobs, 16 a pause,
-- 32 repeated claims and 64 limits that were ever set. Scripts that workers call at each job are made of the parts for these, and
-- begin with a look at the number. The first use sets it in the script that does it; a sweep takes off what is no longer there.
-- @keys features
-- needs  nothing
-- gives  use_feature
local LANES, UNIQUE, MARKS, LATER, PAUSED, REPEATS, RULES = 1, 2, 4, 8, 16, 32, 64
local function use_feature(number)
    local used = tonumber(string.match(redis.call("GET", features) or "", "^%d%d?%d?$")) or 0
    if used % (2 * number) < number then redis.call("SET", features, used + number) end
end
