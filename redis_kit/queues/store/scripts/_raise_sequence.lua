-- Raise the counter to the first ready job, which is ahead of it if lanes took turns: those that are added are to be behind it.
-- needs  ready, sequence
-- gives  raise_sequence
local function raise_sequence()
    local head = redis.call("ZRANGEBYSCORE", ready, 0, 2 ^ 44, "WITHSCORES", "LIMIT", 0, 1)[2]
    local ahead = head and math.floor(head - redis.call("INCRBY", sequence, 0)) or 0
    if ahead > 0 then redis.call("INCRBY", sequence, ahead) end
end
