#!lua flags=no-writes
-- Find the entries of a scope in which words begin with those of a query, the heaviest first.
--
-- KEYS[1]      state       hash: parameters and shape of an index
-- KEYS[2...]   keys        terms, entries and scopes of the active generation; none if there is none
-- ARGV[1]      parameters  that the caller expects; "" for any
-- ARGV[2]      shape       that the caller knows
-- ARGV[3]      guard       "1" if only a complete index may answer
-- ARGV[4]      scope       to search in
-- ARGV[5]      prefix      of the fields of its entries, before their ids
-- ARGV[6]      limit       number of entries
-- ARGV[7]      budget      number of blocks that may be read
-- ARGV[8]      level       to go on with; 0 for the first one
-- ARGV[9]      block       after which to go on in this level; "" for the first one
-- ARGV[10]     word        by which terms are found; "" for all
-- ARGV[11...]  others      further words, the longest first; each begins a word of its own
-- returns      the level and block to go on with, and the record and the id of each entry, with \3 between all of these;
--              or a list: a reason why nothing was read, and the stored parameters and shape

local limit, budget, terms, entries, scopes = tonumber(ARGV[6]), tonumber(ARGV[7]), unpack(KEYS, 2)
-- @include redis_kit.core.indexes:_identity
local stored = redis.call("HMGET", KEYS[1], "parameters", "shape", "complete")
if ARGV[1] ~= "" and (stored[1] or ARGV[1]) ~= ARGV[1] or (stored[2] or "") ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
elseif ARGV[3] == "1" then -- complete: a rebuild switched to it, nothing was lost since, and no key was evicted
    if stored[3] ~= (terms and string.match(ARGV[2], "%w+") .. " " .. read_identity()) then return {"incomplete"} end
    if redis.call("EXISTS", unpack(KEYS)) < 4 then return {"empty"} end -- or a key was evicted: the database knows
end
local number, levels = string.match(terms and redis.call("HGET", scopes, ARGV[4]) or "", "^(%w+)\1(.*)$")
local find, sub, others, ids, fields, seen = string.find, string.sub, {unpack(ARGV, 11)}, {}, {}, {}
local other = others[1] and " " .. others[1]
-- The longest word is the first to choose. So any choice does: what is left suits a shorter one as well.
local function has_others(text)
    for _, word in ipairs(others) do
        local at = find(text, " " .. word, 1, true)
        if not at then return false end
        text = sub(text, 1, at - 1) .. (string.match(text, " .*", at + 1) or "")
    end
    return true
end

local function read_block(block, start)
    local at = find(block, start, 1, true)
    while at and #ids < limit do
        if other then -- most terms have no such word: go to the next one that does
            local place = find(block, other, at, true)
            local after = place and find(block, "\1", at + 1, true)
            while after and after < place do at, after = after, find(block, "\1", after + 1, true) end
            if not place or find(block, start, at, true) ~= at then return end
        end
        local middle, id, stop = string.match(block, "()\2([^\1]*)()", at)
        if not (seen[id] or other and not has_others(sub(block, find(block, " ", at, true) or middle, middle - 1))) then
            seen[id], ids[#ids + 1], fields[#ids + 1] = true, id, ARGV[5] .. id
        end
        at = find(block, start, stop, true) == stop and stop
    end
end

-- Read the blocks that begin with this start, and the one before them; return the one to go on after.
local function read_level(start, last)
    local high, low = "(" .. start .. "\255", "(" .. last
    local few = last == "" and #ARGV[10] > 2 and redis.call("ZREVRANGEBYLEX", terms, high, "-", "LIMIT", 0, 3)
    if few and (not few[3] or find(few[3], start, 1, true) ~= 1) then -- no other has any
        for place = #few, 1, -1 do read_block(few[place], start) end
        return ""
    elseif last == "" then
        local block = redis.call("ZREVRANGEBYLEX", terms, "(" .. start, "-", "LIMIT", 0, 1)[1]
        low = block and "[" .. block or "-"
    end
    local size = other and 16 or math.ceil((limit - #ids) / 6) + 1
    while #ids < limit do
        local blocks = redis.call("ZRANGEBYLEX", terms, low, high, "LIMIT", 0, size)
        for _, each in ipairs(blocks) do read_block(each, start) end
        if #blocks < size then return "" end
        budget, low = budget - size, "(" .. blocks[size]
        if budget <= 0 then return blocks[size] end
    end
    return ""
end
local order, level, after, first = {string.byte(levels or "", 1, -1)}, 0, "", tonumber(ARGV[8])
table.sort(order)
for _, byte in ipairs(order) do
    if byte >= first and #ids < limit and after == "" then
        level = byte
        after = read_level("\1" .. number .. string.char(byte) .. ARGV[10], byte == first and ARGV[9] or "")
    end
end
local parts, records = {}, #ids > 0 and redis.call("HMGET", entries, unpack(fields)) or {} -- some may be evicted
for place, id in ipairs(ids) do parts[#parts + 1] = records[place] and records[place] .. "\3" .. id or nil end
return level .. "\3" .. after .. "\3" .. table.concat(parts, "\3") -- one text, as clients take long to read many
