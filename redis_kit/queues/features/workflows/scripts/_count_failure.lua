-- Count a failed step in its groups, up to the first one with a callback, which takes care of the failure.
-- needs  meta, groups, read_node
-- gives  count_failure
local function count_failure(group, by)
    redis.call("HINCRBY", meta, "failed", by)
    local callback = "-"
    while group ~= "0" and callback == "-" do
        local _, parent, _, its_callback = read_node(group)
        redis.call("HINCRBY", groups, "failed:" .. group, by)
        group, callback = parent, its_callback
    end
end
