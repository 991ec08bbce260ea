-- Tells which job has a unique key: one that is neither done nor dead and, where the key is for "queued" jobs, has not
-- begun. Nothing has to happen when a job begins or dies, and an entry that was left behind keeps nobody away.
local function held(key)
    local id = redis.call("HGET", unique, key)
    local owned = id and redis.call("HGET", owners, id)
    local record = owned and redis.call("HGET", jobs, id)
    if not record or redis.call("ZSCORE", dead, id) then
        return nil
    end
    local _, attempts = read(record)
    return (owned == "done " .. key or owned == "queued " .. key and attempts == 0) and id or nil
end
