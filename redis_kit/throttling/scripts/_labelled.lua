-- Return the member of a list of callers that begins with a caller's hash.
local function labelled(key, who)
    for _, label in ipairs(redis.call("ZRANGE", key, 0, -1)) do
        if string.sub(label, 1, #who) == who then
            return label
        end
    end
end
