-- Remove the slots of the token's lease on one level; true if it had any there.
-- needs  token
-- gives  remove_slots
local function remove_slots(holders, limit, weight)
    if not limit then
        return false
    end
    local is_light = weight == "1"
    local removed = redis.call("ZREM", holders, token .. " " .. limit .. (is_light and "" or " " .. weight)) == 1
    if removed and not is_light and tonumber(redis.call("ZINCRBY", holders, 1 - weight, "extra")) <= 0 then
        redis.call("ZREM", holders, "extra")
    end
    return removed
end
