-- Return in how many ms the next lease of another worker ends; -1 when there is no other worker.
-- needs  workers, worker, now
-- gives  next_lease_end
local function next_lease_end()
    local first = redis.call("ZRANGE", workers, 0, 1, "WITHSCORES")
    local at = first[1] == worker and 4 or 2
    return first[at] and math.max(0, first[at] - now) or -1
end
