-- Acknowledge the jobs of a worker that ARGV names from `start` on, four arguments each, if their claims still hold, and
-- store their results, if any, whose keys begin with KEYS[results]. Returns the numbers of the jobs whose
-- claim was lost, and how many were acknowledged. A repeated call for the last 250 jobs, at least, gets the same answer.
-- A result whose key is of a wrong type is not stored, or no job would end until that key is gone.
-- needs  KEYS, ARGV, running, jobs, settled, free_unique_key, store_result
-- gives  ack_jobs
local function ack_jobs(worker, start, results, any_unique)
    local members, ids, lost, stored, with_result = {}, {}, {}, {}, 0
    for at = start, #ARGV, 4 do
        members[#members + 1] = ARGV[at] .. "/" .. ARGV[at + 1]
        ids[#ids + 1] = ARGV[at + 1]
        if ARGV[at + 2] ~= "" then
            local result, finished = KEYS[results + 2 * with_result], KEYS[results + 2 * with_result + 1]
            local waiting, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
            with_result = with_result + 1
            if type(waiting) ~= "table" then
                stored[#stored + 1] = {#ids, result, finished, type(list) == "number" and waiting, at + 2}
            end
        end
    end
    if #ids == 0 then
        return lost, 0
    end
    local answers, holds = redis.call("HGET", settled, worker) or "", redis.call("ZMSCORE", running, unpack(members))
    local records, marks, done = #stored > 0 and redis.call("HMGET", jobs, unpack(ids)), {answers}, {}
    redis.call("HLEN", jobs)
    for at = 1, #ids do
        local mark = string.match(ARGV[start + 4 * at - 4], "^[^/]+/([^/]+)/") or "?"
        if holds[at] then
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
    for _, id in ipairs(any_unique and done or {}) do
        free_unique_key(id, any_unique)
    end
    for _, entry in ipairs(stored) do
        if holds[entry[1]] then
            local record, value, ttl_ms = records[entry[1]] or "", ARGV[entry[5]], ARGV[entry[5] + 1]
            store_result(entry[2], entry[3], ttl_ms, entry[4], "SUCCESSFUL", record, "value", value)
        end
    end
    return lost, #done
end
