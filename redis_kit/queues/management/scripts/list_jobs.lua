#!lua flags=no-writes
-- Count the jobs of each state, and return those of one after a place: ready ones in the order of claims, after them those
-- that wait for a limit, scheduled ones by due time, running ones by worker, and dead ones from the latest. There are fewer
-- than `limit` where they are large: a script must not keep the server for long.
-- One script: the page belongs to the counts.
--
-- @keys scheduled, ready, running, dead, jobs, reasons
-- ARGV[1]  state      "" to count only
-- ARGV[2]  after      the place after which the page begins, or ""
-- ARGV[3]  limit      how many, at most
-- ARGV[4]  cut        bytes of a record that are returned; a longer one is without its attempts but the last
-- ARGV[5]  bytes      of records that are read, at most, but for the last
-- returns  how many are scheduled, ready, running, dead; those that wait for a limit are ready; {the place of each job}; {id,
--          record, when it died or is to start in ms, or "", why it died or for which limit it waits, or "", worker or "" of each};
--          the last place if there may be jobs after it, or ""

local state, after, limit, cut, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local key = ({ready = ready, scheduled = scheduled, dead = dead, running = running})[state]
local waiting = redis.call("ZCARD", ready)
-- @hook on_count(waiting)
local counts = {redis.call("ZCARD", scheduled), waiting, redis.call("ZCARD", running), redis.call("ZCARD", dead)}
if not key then
    return counts
end

-- A job that has left this state since is not found: the page begins where it was. No job is passed over for that.
local function offset_after(score, member)
    -- @hook on_offset(score, member)
    if redis.call("ZSCORE", key, member) == score then
        return (state == "dead" and redis.call("ZREVRANK", key, member) or redis.call("ZRANK", key, member)) + 1
    elseif state == "running" then
        return redis.call("ZLEXCOUNT", key, "-", "[" .. member)
    elseif state == "dead" then
        return redis.call("ZCOUNT", key, "(" .. score, "+inf")
    end
    return redis.call("ZCOUNT", key, "-inf", "(" .. score)
end

local offset = after == "" and 0 or offset_after(string.match(after, "^(%S+) (.*)$"))
local range, reasons_of, page, places, places_of = state == "dead" and "ZREVRANGE" or "ZRANGE", {}, {}, {}, {}
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
        page[#page + 1] = item
    end
    bytes = bytes - size
    if bytes <= 0 or #places == limit then
        break
    end
end
counts[5], counts[6] = places, page
counts[7] = (#places == limit or 2 * #places < #entries) and places[#places] or ""
return counts
