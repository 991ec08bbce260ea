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
-- ARGV[7]      budget      number of terms that may be read
-- ARGV[8]      level       to go on with; 0 for the first one
-- ARGV[9]      block       after which to go on in this level; "" for the first one
-- ARGV[10]     word        by which terms are found; "" for all
-- ARGV[11...]  others      further words, the longest first; each begins a word of its own
-- returns      a reason why nothing was read, or ""; the stored parameters and shape, or the level and block to go on
--              with; and each id and record with \1 between, and \3 between these

local limit, budget, terms, entries, scopes = tonumber(ARGV[6]), tonumber(ARGV[7]), unpack(KEYS, 2)
-- @include redis_kit.core.indexes:_identity
local stored = redis.call("HMGET", KEYS[1], "parameters", "shape", "complete")
if ARGV[1] ~= "" and (stored[1] or ARGV[1]) ~= ARGV[1] or (stored[2] or "") ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
elseif ARGV[3] == "1" then -- complete: a rebuild switched to it, nothing was lost since, and no key was evicted
    local complete = terms and string.match(ARGV[2], "%w+") .. " " .. read_identity()
    if stored[3] ~= complete or redis.call("EXISTS", unpack(KEYS)) < 4 then return {"incomplete"} end
end
local number, levels = string.match(terms and redis.call("HGET", scopes, ARGV[4]) or "", "^(%w+)\1(.*)$")
local others, fields, seen = {unpack(ARGV, 11)}, {}, {}

-- The longest word is the first to choose. So any choice does: what is left suits a shorter one as well.
local function has_others(text)
    local left = string.match(text, " .*") or ""
    for _, other in ipairs(others) do
        local at = string.find(left, " " .. other, 1, true)
        if not at then return false end
        left = string.sub(left, 1, at - 1) .. (string.match(left, " .*", at + 1) or "")
    end
    return true
end

local function read_block(block, start)
    local at = string.find(block, start, 1, true)
    while at and #fields < limit do
        local middle, stop = string.find(block, "\2", at, true), string.find(block, "\1", at + 1, true)
        local field = ARGV[5] .. string.sub(block, middle + 1, (stop or 0) - 1)
        if not seen[field] and (#others == 0 or has_others(string.sub(block, at + #number + 2, middle - 1))) then
            seen[field] = true
            fields[#fields + 1] = field
        end
        budget = budget - 1
        at = stop and string.sub(block, stop, stop + #start - 1) == start and stop
    end
end

-- Read the blocks that begin with this start, and the one before them; return the one to go on after.
local function read_level(start, last)
    local high, low, count = "(" .. start .. "\255", "(" .. last, 8
    if last == "" then
        local block = redis.call("ZREVRANGEBYLEX", terms, high, "-", "LIMIT", 0, 1)[1]
        if not block or string.sub(block, 1, #start) ~= start then
            return block and read_block(block, start) or ""
        end
        block = redis.call("ZREVRANGEBYLEX", terms, "(" .. start, "-", "LIMIT", 0, 1)[1]
        low = block and "[" .. block or "-"
    end
    while count == 8 and #fields < limit do
        local blocks = redis.call("ZRANGEBYLEX", terms, low, high, "LIMIT", 0, count)
        count = #blocks
        for _, block in ipairs(blocks) do
            read_block(block, start)
            low = "(" .. block
            if budget <= 0 then return block end
        end
    end
    return ""
end
local order, level, after = {string.byte(levels or "", 1, -1)}, 0, ""
table.sort(order)
for _, byte in ipairs(order) do
    if byte >= tonumber(ARGV[8]) and #fields < limit and after == "" then
        level = byte
        after = read_level("\1" .. number .. string.char(byte) .. ARGV[10], ARGV[8] == tostring(byte) and ARGV[9] or "")
    end
end
local found = #fields > 0 and redis.call("HMGET", entries, unpack(fields)) or {}
for place, field in ipairs(fields) do
    found[place] = string.sub(field, #ARGV[5] + 1) .. "\1" .. (found[place] or "")
end
return {"", level, after, table.concat(found, "\3")} -- few parts, as clients take long to read many
