-- Ends the jobs of a worker that ARGV names from `start` on, four arguments each, where their claims still hold, keeps
-- the results of those that have one, and returns the numbers of the others. Of those that it ended before, 250 at
-- least, it says the same again. Returns besides how many ended. A result whose key is of a wrong type is not kept, or no
-- job would end until that is gone. Needs _keep.
local function end_jobs(worker, start, results)
    local members, ids, lost, kept, with = {}, {}, {}, {}, 0
    for at = start, #ARGV, 4 do
        members[#members + 1] = ARGV[at] .. "/" .. ARGV[at + 1]
        ids[#ids + 1] = ARGV[at + 1]
        if ARGV[at + 2] ~= "" then
            local result, finished = KEYS[results + 2 * with], KEYS[results + 2 * with + 1]
            local waiting, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
            with = with + 1
            if type(waiting) ~= "table" then
                kept[#kept + 1] = {#ids, result, finished, type(list) == "number" and waiting, at + 2}
            end
        end
    end
    if #ids == 0 then
        return lost, 0
    end
    local answers, held = redis.call("HGET", settled, worker) or "", redis.call("ZMSCORE", running, unpack(members))
    local records, marks, done = #kept > 0 and redis.call("HMGET", jobs, unpack(ids)), {answers}, {}
    redis.call("HLEN", jobs)
    for at = 1, #ids do
        local mark = string.match(ARGV[start + 4 * at - 4], "^[^/]+/([^/]+)/") or "?"
        if held[at] then
            done[#done + 1], marks[#marks + 1] = ids[at], mark .. ":4"
        elseif not string.find(answers, " " .. mark .. ":4", 1, true) then
            lost[#lost + 1] = at
        end
    end
    if #done == 0 then
        return lost, 0
    end
    redis.call("ZREM", running, unpack(members))
    redis.call("HDEL", jobs, unpack(done))
    redis.call("HSET", settled, worker, string.sub(table.concat(marks, " "), -4096))
    for _, id in ipairs(some_unique and done or {}) do
        free(id)
    end
    for _, one in ipairs(kept) do
        if held[one[1]] then
            local record, value, ttl = records[one[1]] or "", ARGV[one[5]], ARGV[one[5] + 1]
            keep(one[2], one[3], ttl, one[4], "SUCCESSFUL", record, "value", value)
        end
    end
    return lost, #done
end
