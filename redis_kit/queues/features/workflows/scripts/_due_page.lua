-- Return some steps that are due since a step ended and that may not be in their queues yet: number and node of each.
-- needs  due, steps
-- gives  due_page
local function due_page(owner, reply)
    local size = 0
    for _, number in ipairs(redis.call("ZRANGEBYSCORE", due, owner, owner, "LIMIT", 0, 200)) do
        local node = redis.call("HGET", steps, number) or ""
        if size + #node > 1048576 and size > 0 then
            return reply
        end
        size = size + #node
        table.insert(reply, number)
        table.insert(reply, node)
    end
    return reply
end
