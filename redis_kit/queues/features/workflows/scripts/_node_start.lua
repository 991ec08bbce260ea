-- Return a node; of a step's body only as much as holds the name of its task.
-- needs  steps
-- gives  node_start
local function node_start(number)
    local head, body = string.match(redis.call("HGET", steps, number) or "", "^([^\n]*\n)(.*)$")
    if head and string.sub(head, 1, 1) == "g" then
        return head .. (redis.call("HGET", steps, "members:" .. number) or "")
    end
    return head and head .. string.sub(body, 1, 512) or ""
end
