-- The queue of tickets. Each names its weight and the list on which its process waits; at most 200 are read.
-- needs  queue, tickets, waiters
-- gives  remove_tickets, first_tickets, wake_tickets
local TICKET_TTL = 3500 -- ms that a ticket counts after each request of its process

local function remove_tickets(gone)
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

local function wake_tickets(used, limit)
    local first, stored = first_tickets(200)
    for at, ticket in ipairs(first) do
        local weight, list = string.match(stored[at] or "1 ", "^(%d+) (.*)$")
        used = used + weight
        if used > limit then
            return
        end
        if list ~= "" then
            redis.call("RPUSH", list, ticket)
            redis.call("PEXPIRE", list, TICKET_TTL)
        end
    end
end
