-- Which documents match a query, and their scores.
--
-- needs  KEYS, docs, found, extra, unite, intersect
-- gives  match, keep_phrases, lift

local COMMON, LEAST, MOST = 0.05, 1000, 10000
local CANDIDATES, CHUNK = 5000, 500

-- A key with the documents of clauses, and the factor of its scores. A common word finds nothing by itself beside a rarer
-- one: it only adds to the scores of what others find.
local function match(required, optional, excluded, documents)
    local base, join, adding = required, intersect, optional
    if #required == 0 then
        local common = math.min(MOST, math.max(LEAST, COMMON * documents))
        while #optional > 1 and optional[1].size == 0 do table.remove(optional, 1) end -- a word of no document
        local has_rare = #optional > 0 and optional[1].size <= common
        base, adding = {}, {}
        for _, set in ipairs(optional) do
            local list = (not has_rare or set.size <= common) and base or adding
            list[#list + 1] = set
        end
        join = has_rare and unite or intersect
    end
    local sets, weights, without = {}, {}, {}
    for place, set in ipairs(base) do
        sets[place], weights[place] = set.set, set.factor
    end
    if #base > 1 then
        join(found, sets, weights)
    end
    local result, factor = #base == 1 and sets[1] or found, #base == 1 and weights[1] or 1
    for place, set in ipairs(excluded) do
        without[place] = set.set
    end
    if #excluded > 0 then
        redis.call("ZDIFFSTORE", found, 1 + #excluded, result, unpack(without))
        result = found
    end
    for _, set in ipairs(adding) do
        if set.size > 0 then
            intersect(extra, {result, set.set}, {0, set.factor})
            unite(found, {result, extra}, {factor, 1})
            result, factor = found, 1
        end
    end
    return result, factor
end

-- Fill `found` with those of the best documents whose records have all phrases, and none of others.
local function keep_phrases(result, phrases, others)
    local candidates = redis.call("ZRANGE", result, 0, CANDIDATES - 1, "REV", "WITHSCORES")
    redis.call("UNLINK", found)
    for start = 1, #candidates, 2 * CHUNK do
        local ids, members = {}, {}
        for place = start, math.min(#candidates, start + 2 * CHUNK - 1), 2 do
            ids[#ids + 1] = candidates[place]
        end
        for place, record in ipairs(redis.call("HMGET", docs, unpack(ids))) do
            local fits = record
            for number = 1, fits and #phrases + #others or 0 do
                local phrase = phrases[number] or others[number - #phrases]
                fits = fits and (string.find(record, phrase, 1, true) ~= nil) == (number <= #phrases)
            end
            if fits then
                members[#members + 1] = candidates[start + 2 * place - 1]
                members[#members + 1] = ids[place]
            end
        end
        if #members > 0 then
            redis.call("ZADD", found, unpack(members))
        end
    end
end

-- Fill `found` with scores of 0 to 1: shares for sorts, linear from their least value to the largest, and the rest for the
-- scores so far. Returns what has to be added to all of them.
local function lift(result, factor, boosts, factors)
    local best = (redis.call("ZRANGE", result, -1, -1, "WITHSCORES")[2] or 0) * factor
    local share, shift, sets, weights, shares = 1, 0, {result}, {0}, {}
    for place, boost in ipairs(boosts) do
        local set = KEYS[boost[1]]
        local low = tonumber(redis.call("ZRANGE", set, 0, 0, "WITHSCORES")[2] or 0)
        local high = tonumber(redis.call("ZRANGE", set, -1, -1, "WITHSCORES")[2] or 0)
        local weight = high > low and boost[2] / (high - low) or 0
        share, shift = share - boost[2], shift - low * weight
        sets[place + 1], weights[place + 1], shares[boost[1]] = set, weight, {weight, low}
    end
    local relevance = best > 0 and share / best or 0
    weights[1] = factor * relevance
    for number, pair in pairs(factors) do
        pair[1] = pair[1] * relevance
    end
    for number, pair in pairs(shares) do
        factors[number] = pair
    end
    intersect(found, sets, weights)
    return shift
end
