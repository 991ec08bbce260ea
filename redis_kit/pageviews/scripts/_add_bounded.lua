-- Add counts to a sorted set of a limited size: "Space-Saving" of Metwally et al. (2005). A member that is new to a full
-- set takes the place of the smallest one, and its count. So members above the average of a full set are never missing,
-- and the count of a late member may be too high, by the smallest count at most.
-- needs  nothing
-- gives  add_bounded

local function add_bounded(key, most, counts)
    for place = 1, #counts, 2 do
        local member, count = counts[place], counts[place + 1]
        if not redis.call("ZSCORE", key, member) and redis.call("ZCARD", key) >= most then
            count = count + redis.call("ZPOPMIN", key)[2]
        end
        redis.call("ZINCRBY", key, count, member)
    end
end
