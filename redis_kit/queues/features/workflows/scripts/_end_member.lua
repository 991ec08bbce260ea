-- Note that a member of a group has ended. With the last one the group ends: its callback is due or, without failures,
-- what follows it. With the outermost group the workflow ends.
-- needs  meta, groups, states, now, read_node, count_down, conclude
-- gives  end_member
local function end_member(group, owner, ttl_ms, failed_ttl_ms)
    if redis.call("HINCRBY", groups, "active:" .. group, -1) > 0 then
        return
    end
    if group == "0" then
        local failed = tonumber(redis.call("HGET", meta, "failed") or 0) > 0
        conclude(failed and "failed" or "successful", failed and failed_ttl_ms or ttl_ms)
        return
    end
    local failed = tonumber(redis.call("HGET", groups, "failed:" .. group) or 0) > 0
    local _, parent, dependents, callback = read_node(group)
    redis.call("HSET", states, group, (failed and "failed " or "successful ") .. now)
    if callback ~= "-" then
        count_down(callback, owner)
    elseif not failed then
        for dependent in string.gmatch(dependents, "%d+") do
            count_down(dependent, owner)
        end
    end
    end_member(parent, owner, ttl_ms, failed_ttl_ms)
end
