-- Read the jobs of one state from an offset on: ready ones in the order of claims, after them those that wait for a limit,
-- scheduled ones by due time, running ones by worker, and dead ones from the latest. Returns for each: id, record cut to its
-- first bytes, when it died or is to start in ms, or "", why it died or for which limit it waits, or "", worker or "". Fewer
-- than `limit` where they are large: a script must not keep the server for long. Returns also the place of each, for place_of_job.
-- @keys jobs, reasons
-- needs  nothing
-- gives  read_jobs
local function read_jobs(state, key, offset, limit, cut, bytes)
    local range, reasons_of, reply, places, places_of = state == "dead" and "ZREVRANGE" or "ZRANGE", {}, {}, {}, {}
    local entries = redis.call(range, key, offset, offset + limit - 1, "WITHSCORES")
    -- @hook on_read(state, key, offset, limit, entries, reasons_of, places_of)
    for at = 1, #entries, 2 do
        local id, moment, reason, worker = entries[at], "", reasons_of[entries[at]] or "", ""
        places[#places + 1] = places_of[(at + 1) / 2] or entries[at + 1] .. " " .. id
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
