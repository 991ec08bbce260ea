-- Admit names of pages and objects of a day, up to a limit, and note the kind of identity that the day has.
-- needs  nothing
-- gives  admit

local function admit(pages, identities, limit, pages_ttl, identities_ttl, kind, names)
    local count = redis.call("SCARD", pages)
    local admitted = {}
    redis.call("SCARD", identities)  -- fails before the first write if it is another type
    for place, name in ipairs(names) do
        local known = redis.call("SISMEMBER", pages, name)
        if known == 0 and count < tonumber(limit) then
            redis.call("SADD", pages, name)
            count, known = count + 1, 1
        end
        admitted[place] = known
    end
    redis.call("SADD", identities, kind)
    redis.call("PEXPIRE", pages, pages_ttl)
    redis.call("PEXPIRE", identities, identities_ttl)
    return admitted
end
