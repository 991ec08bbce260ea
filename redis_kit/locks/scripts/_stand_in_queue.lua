-- Put the token's ticket into the queue.
-- needs  token, weight, now, queue, tickets, waiters, first_tickets, ARGV
-- gives  weight_of_first, sequence, stand_in_queue
local function weight_of_first(count)
    local sum, _, stored = count > 200 and math.huge or 0, first_tickets(count)
    for _, ticket in ipairs(stored) do
        sum = sum + (string.match(ticket or "", "^%d+") or 1)
    end
    return sum
end

-- At the end; but if the ticket counted as dead before later ones of its process did, in front of those.
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

local function stand_in_queue(list, first_mate, ticket_ttl)
    redis.call("ZADD", queue, "NX", sequence(first_mate), token)
    redis.call("HSET", tickets, token, weight .. " " .. list)
    redis.call("ZADD", waiters, now + ticket_ttl, token)
    for _, key in ipairs({ waiters, queue, tickets }) do
        redis.call("PEXPIRE", key, ticket_ttl)
    end
end
