#!lua flags=no-writes
-- Return how many jobs have each state, and a page of those of one state: the ones after a place, in the order of _read_jobs.
-- One script: the page belongs to the counts.
--
-- @keys ready, scheduled, running, dead
-- ARGV[1]  state
-- ARGV[2]  after      the place after which the page begins; "" for the first page
-- ARGV[3]  limit      how many, at most
-- ARGV[4]  cut        bytes of a record that are returned; a longer one is without its attempts but the last
-- ARGV[5]  bytes      of records that are read, at most, but for the last
-- returns  how many are scheduled, ready, running, dead; those that wait for a limit are ready; {the place of each job}; {as peek
--          returns it}

local state, after = ARGV[1], ARGV[2]
local key = ({ready = ready, scheduled = scheduled, dead = dead, running = running})[state]
-- @include _read_jobs
local waiting = redis.call("ZCARD", ready)
-- @hook on_count(waiting)

-- A job that has left this state since is not found: the page begins where it was. No job is passed over for that.
local function offset_after(score, member)
    if not score then
        return 0
    end
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

local offset = offset_after(string.match(after, "^(%S+) (.*)$"))
local page, places = read_jobs(state, key, offset, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))
return {redis.call("ZCARD", scheduled), waiting, redis.call("ZCARD", running), redis.call("ZCARD", dead), places, page}
