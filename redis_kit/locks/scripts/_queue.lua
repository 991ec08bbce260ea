-- The queue of tickets. Each names its weight and the list on which its process waits; at most 200 are looked at.
local TICKET = 3500 -- ms that one counts after its process has asked

local function drop_tickets(gone)
    if #gone > 0 then
        redis.call("ZREM", queue, unpack(gone))
        redis.call("HDEL", tickets, unpack(gone))
        redis.call("ZREM", waiters, unpack(gone))
    end
end

local function first_tickets(count)
    local first = count > 0 and redis.call("ZRANGE", queue, 0, math.min(count, 200) - 1) or {}
    return first, #first > 0 and redis.call("HMGET", tickets, unpack(first)) or {}
end

local function weight_of_first(count)
    local sum, _, named = count > 200 and math.huge or 0, first_tickets(count)
    for _, ticket in ipairs(named) do
        sum = sum + (string.match(ticket or "", "^%d+") or 1)
    end
    return sum
end

local function wake_tickets(used, limit)
    local first, named = first_tickets(200)
    for at, ticket in ipairs(first) do
        local weight, list = string.match(named[at] or "1 ", "^(%d+) (.*)$")
        used = used + weight
        if used > limit then
            return
        end
        if list ~= "" then
            redis.call("RPUSH", list, ticket)
            redis.call("PEXPIRE", list, TICKET)
        end
    end
end

-- At the end; but before those of its process that stand behind it there, if its ticket was taken for dead before theirs.
local function sequence(first_mate)
    local number = (redis.call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] or 0) + 1
    local behind = false
    for at = first_mate, #ARGV do
        local other = behind and redis.call("ZSCORE", queue, ARGV[at])
        number = math.min(number, other and other - 0.5 or number)
        behind = behind or ARGV[at] == token
    end
    return number
end

local function stand_in_queue(list, first_mate)
    redis.call("ZADD", queue, "NX", sequence(first_mate), token)
    redis.call("HSET", tickets, token, weight .. " " .. list)
    redis.call("ZADD", waiters, now + TICKET, token)
    for _, key in ipairs({ waiters, queue, tickets }) do
        redis.call("PEXPIRE", key, TICKET)
    end
end
