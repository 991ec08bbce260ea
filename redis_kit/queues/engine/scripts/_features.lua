-- Which features a queue uses: the sum of 8 for scheduled jobs, 32 for repeated claims, and the bits of features.
-- Scripts that workers call at each job are made of the parts for these, and begin with a look at the number. The first use sets
-- it in the script that does it; a sweep takes off what is no longer there.
-- @keys features
-- needs  nothing
-- gives  use_feature
local function use_feature(number)
    local used = tonumber(string.match(redis.call("GET", features) or "", "^%d%d?%d?$")) or 0
    if used % (2 * number) < number then redis.call("SET", features, used + number) end
end
