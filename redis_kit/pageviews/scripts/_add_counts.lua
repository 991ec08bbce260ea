-- Add counts to a sorted set: two commands for any number of members, as each command of a script costs more than its
-- work. A new member sets the expiry.
-- needs  nothing
-- gives  add_counts

local function add_counts(key, ttl, counts)
    local members, sums, has_new = {}, {}, false
    for place = 2, #counts, 2 do
        members[place / 2] = counts[place - 1]
    end
    for place, score in ipairs(redis.call("ZMSCORE", key, unpack(members))) do
        has_new = has_new or not score
        sums[2 * place - 1], sums[2 * place] = (score or 0) + counts[2 * place], members[place]
    end
    redis.call("ZADD", key, unpack(sums))
    if has_new then
        redis.call("PEXPIRE", key, ttl)
    end
end
