-- Take what removed slots weighed beyond one from the sum of all holders.
-- needs  nothing
-- gives  remove_weight
local function remove_weight(holders, weight)
    if tonumber(redis.call("ZINCRBY", holders, 1 - weight, "extra")) <= 0 then
        redis.call("ZREM", holders, "extra")
    end
end
