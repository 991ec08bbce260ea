-- Return the beginning of a node: its first line, then the members of a group, or as much of a step's body as holds the
-- name of its task.
-- needs  steps
-- gives  node_start
local function node_start(number)
    local head, body = string.match(redis.call("HGET", steps, number) or "", "^([^\n]*\n)(.*)$")
    if head and string.sub(head, 1, 1) == "g" then
        body = redis.call("HGET", steps, "members:" .. number) or ""
        return head .. body
    end
    return head and head .. string.sub(body, 1, 512) or ""
end
