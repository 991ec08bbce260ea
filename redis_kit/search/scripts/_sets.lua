-- Sets of documents with scores, and the clauses of a query.
--
-- needs  KEYS, words, prefix
-- gives  weighted, unite, intersect, read_clauses

local SCALE = 10000 -- of stored scores

local function weighted(sets, weights)
    local count = #sets
    local arguments = {count, [2 + count] = "WEIGHTS"}
    for place = 1, count do
        arguments[1 + place], arguments[2 + count + place] = sets[place], weights[place]
    end
    return unpack(arguments, 1, 2 + 2 * count)
end

local function unite(target, sets, weights)
    redis.call("ZUNIONSTORE", target, weighted(sets, weights))
end

local function intersect(target, sets, weights)
    redis.call("ZINTERSTORE", target, weighted(sets, weights))
end

-- The set of each clause, its size, and the factor of its scores, which is BM25's idf; the smallest first. Nothing if a
-- key is gone that should be there. `factors` gets that of each key, and what is taken from its scores before.
local function read_clauses(clauses, documents, factors)
    local found = {}
    for place, clause in ipairs(clauses) do
        local sets = {}
        for each, number in ipairs(clause.sets) do
            local key = KEYS[number]
            if redis.call("EXISTS", key) == 0 and redis.call("ZSCORE", words, string.sub(key, prefix + 1)) then
                return nil
            end
            sets[each] = key
        end
        local set = sets[1]
        if #sets > 1 then
            set = KEYS[clause.target]
            unite(set, sets, clause.weights)
        end
        local size = redis.call("ZCARD", set)
        local factor = clause.scored and math.log(1 + (documents - size + 0.5) / (size + 0.5)) / SCALE or 0
        for each, number in ipairs(clause.sets) do
            factors[number] = {factor * clause.weights[each], 0}
        end
        found[place] = {set = set, size = size, factor = factor}
    end
    table.sort(found, function(one, other) return one.size < other.size end)
    return found
end
