-- Terms of entries, in blocks. A term is `number level rotation \2 id`; a rotation is a text from one of its words on,
-- with the words before it at the end. A member of the sorted set is a block: the terms of a range in their order, with
-- \1 before each. Its first term decides its place. A member for each term would take three times the memory.
--
-- needs  nothing
-- gives  precedes, level_of, note_terms, set_term

local BLOCK = 12 -- terms in a block; a larger one is divided
-- Byte by byte: the operator of Lua follows the locale of the server.
local function precedes(one, other)
    local place = 1
    while place <= #one and string.byte(one, place) == string.byte(other, place) do
        place = place + 1
    end
    return (string.byte(one, place) or 0) < (string.byte(other, place) or 0)
end

-- The magnitude of a weight, as a byte: the heaviest come first.
local function level_of(weight)
    local _, exponent = math.frexp(weight)
    return string.char(253 - math.max(0, math.min(exponent, 221)))
end

-- Note the terms of an entry, and whether they are to be there.
local function note_terms(terms, entry, id, are_wanted)
    local head = entry.number .. level_of(entry.base + entry.used)
    for spelling in string.gmatch(entry.spellings, "[^\2]+") do
        for start in string.gmatch(spelling, "()[^ ]+") do
            local before = start > 1 and " " .. string.sub(spelling, 1, start - 2) or ""
            terms[head .. string.sub(spelling, start) .. before .. "\2" .. id] = are_wanted
        end
    end
end

-- Add a term to its block, or remove it.
local function set_term(key, term, is_wanted)
    local block = redis.call("ZREVRANGEBYLEX", key, "(\1" .. term .. "\2", "-", "LIMIT", 0, 1)[1]
    block = block or redis.call("ZRANGE", key, 0, 0)[1] or ""
    local terms, place, is_there = {}, 1, false
    for each in string.gmatch(block, "[^\1]+") do
        is_there = is_there or each == term
        place = place > #terms and precedes(each, term) and #terms + 2 or place
        terms[#terms + 1] = each
    end
    if is_there == is_wanted then return end
    redis.call("ZREM", key, block)
    if is_wanted then
        table.insert(terms, place, term)
    else
        table.remove(terms, place)
    end
    local half = #terms > BLOCK and math.floor(#terms / 2) or #terms
    for _, part in ipairs({table.concat(terms, "\1", 1, half), table.concat(terms, "\1", half + 1)}) do
        if part ~= "" then redis.call("ZADD", key, 0, "\1" .. part) end
    end
end
