-- Return the beginning of a node: its first line, and as much of a step's body as holds the name of its task.
-- needs  steps
-- gives  node_start
local function node_start(number)
    local head, body = string.match(redis.call("HGET", steps, number) or "", "^([^\n]*\n)(.*)$")
    return head and head .. string.sub(body, 1, 512) or ""
end
