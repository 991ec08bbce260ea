-- Return in how many ms the next lease of another worker ends, but for the first ones; -1 when there is no other worker.
-- needs  workers, worker, now
-- gives  next_lease_end
local function next_lease_end(passed)
    local first = redis.call("ZRANGE", workers, passed, passed + 1, "WITHSCORES")
    local at = first[1] == worker and 4 or 2
    return first[at] and math.max(0, first[at] - now) or -1
end
