-- Read the jobs of one state from an offset on: ready ones in the order of claims, after them those that wait for a limit,
-- scheduled ones by due time, running ones by worker, and dead ones from the latest. Returns for each: id, record cut to its
-- first bytes, when it died or is to start in ms, or "", why it died or for which limit it waits, or "", worker or "". Fewer
-- than `limit` where they are large: a script must not keep the server for long. Returns also the place of each, for place_of_job.
-- @keys jobs, reasons, parked
-- needs  awaited_limit
-- gives  read_jobs
local function read_jobs(state, key, offset, limit, cut, bytes)
    local range, awaited, reply, places, parked_at = state == "dead" and "ZREVRANGE" or "ZRANGE", {}, {}, {}, {}
    local entries = redis.call(range, key, offset, offset + limit - 1, "WITHSCORES")
    if state == "ready" and #entries < 2 * limit then
        local from = math.max(0, offset - redis.call("ZCARD", key))
        for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", from, limit - #entries / 2)) do
            local lane, id = string.match(member, "^job\n([^\n]*)\n.*\n(.*)$")
            entries[#entries + 1], entries[#entries + 2] = id or member, ""
            awaited[id or member] = lane and awaited_limit(lane)
            parked_at[#entries / 2] = "parked " .. member
        end
    end
    for at = 1, #entries, 2 do
        local id, moment, reason, worker = entries[at], "", awaited[entries[at]] or "", ""
        places[#places + 1] = parked_at[(at + 1) / 2] or entries[at + 1] .. " " .. id
        if state == "dead" then
            moment, reason = entries[at + 1], redis.call("HGET", reasons, id) or ""
        elseif state == "scheduled" then
            moment = entries[at + 1]
        elseif state == "running" then
            worker, id = string.match(id, "^([^/]+)/[^/]+/[^/]+/(.*)$")
        end
        local record = id and redis.call("HGET", jobs, id) or ""
        local size = #record
        if size > cut then record = string.gsub(record, "^([^\n]*\n~[^ \n]*)[^\n]*( [^ \n]*\n)", "%1%2") end
        for _, item in ipairs({id or entries[at], string.sub(record, 1, cut), moment, reason, worker or ""}) do
            reply[#reply + 1] = item
        end
        bytes = bytes - size
        if bytes <= 0 or #places == limit then
            break
        end
    end
    return reply, places
end
