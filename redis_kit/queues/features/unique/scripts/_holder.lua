-- Return the id of the job that has a unique key, or nil: a job that is neither done nor dead and, where the key is for
-- "queued" jobs, has not begun. So nothing has to happen when a job begins or dies, and an entry that was left behind
-- blocks nobody.
-- @keys unique, owners, jobs, dead
-- needs  read_record
-- gives  unique_holder
local function unique_holder(key)
    local id = redis.call("HGET", unique, key)
    local owned = id and redis.call("HGET", owners, id)
    local record = owned and redis.call("HGET", jobs, id)
    if not record or redis.call("ZSCORE", dead, id) then
        return nil
    end
    if owned == "done " .. key then
        return id
    end
    local _, attempts = read_record(record)
    return owned == "queued " .. key and attempts == 0 and id or nil
end
