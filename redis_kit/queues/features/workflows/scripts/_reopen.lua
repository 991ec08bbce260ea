-- Let a step that failed or was cancelled count as one that runs; a workflow that had ended goes on.
-- needs  meta, steps, states, groups, due, active, values, errors, read_node, open_group, count_failure
-- gives  reopen
local function reopen(number)
    local _, parent = read_node(number)
    redis.call("HDEL", errors, number)
    count_failure(parent, -1)
    open_group(parent, 1)
    if redis.call("HGET", meta, "status") ~= "running" then
        redis.call("HSET", meta, "status", "running")
        redis.call("HDEL", meta, "ended")
        for _, key in ipairs({meta, steps, states, groups, due, active, values, errors}) do
            redis.call("PERSIST", key)
        end
    end
end
