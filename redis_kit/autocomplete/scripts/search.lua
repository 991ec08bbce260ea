#!lua flags=no-writes
-- Find the entries of a scope in which words begin with those of a query, the heaviest first.
--
-- KEYS[1]      state       hash: parameters and shape of an index
-- KEYS[2...]   keys                   terms, entries and scopes of the active generation; none if there is none
-- ARGV[1]      parameters  that the caller expects
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
--              with; and then ids and records in turns

local state, terms, entries, scopes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local stored = redis.call("HMGET", state, "parameters", "shape", "complete")
if (stored[1] or ARGV[1]) ~= ARGV[1] or (stored[2] or "") ~= ARGV[2] then
    return {"stale", stored[1] or "", stored[2] or ""}
elseif ARGV[3] == "1" then -- complete: a rebuild switched to it in this process of the server
    local run_id = string.match(redis.call("INFO", "server"), "run_id:(%w+)")
    if not terms or stored[3] ~= string.match(ARGV[2], "%w+") .. " " .. run_id then
        return {"incomplete", "", ""}
    end
end
local number, levels = string.match(terms and redis.call("HGET", scopes, ARGV[4]) or "", "^(%w+)\1(.*)$")
local limit, budget, others, ids, fields, seen = tonumber(ARGV[6]), tonumber(ARGV[7]), {unpack(ARGV, 11)}, {}, {}, {}

-- The longest word is the first to choose. So any choice does: what is left suits a shorter one as well.
local function has_others(text)
    local words = {}
    for word in string.gmatch(string.match(text, " (.*)") or "", "[^ ]+") do
        words[#words + 1] = word
    end
    for _, other in ipairs(others) do
        local place = 1
        while words[place] and string.sub(words[place], 1, #other) ~= other do
            place = place + 1
        end
        if not table.remove(words, place) then
            return false
        end
    end
    return true
end

local function read_block(block, start)
    for term in string.gmatch(block, "[^\1]+") do
        if string.sub(term, 1, #start) == start then
            budget = budget - 1
            local text, id = string.match(term, "^([^\2]*)\2(.*)$", #number + 2)
            if not seen[id] and #ids < limit and (#others == 0 or has_others(text)) then
                seen[id] = true
                ids[#ids + 1] = id
                fields[#fields + 1] = ARGV[5] .. id
            end
        end
    end
end

-- Read the blocks that begin with this start, and the one before them; return the one to go on after.
local function read_level(start, last)
    local high, low, count = "(" .. start .. "\255", "(" .. last, 8
    if last == "" then
        local block = redis.call("ZREVRANGEBYLEX", terms, high, "-", "LIMIT", 0, 1)[1]
        if block and string.sub(block, 1, #start) == start then -- there are several
            block = redis.call("ZREVRANGEBYLEX", terms, "(" .. start, "-", "LIMIT", 0, 1)[1]
            low = block and "[" .. block or "-"
        elseif block then
            read_block(block, start)
            return nil
        end
    end
    while count == 8 and #ids < limit do
        local blocks = redis.call("ZRANGEBYLEX", terms, low, high, "LIMIT", 0, count)
        count = #blocks
        for _, block in ipairs(blocks) do
            read_block(block, start)
            low = "(" .. block
            if budget <= 0 then
                return block
            end
        end
    end
    return nil
end

local order, first, level, after = {string.byte(levels or "", 1, -1)}, tonumber(ARGV[8]), 0, ""
table.sort(order)
for _, byte in ipairs(order) do
    if byte >= first and #ids < limit and after == "" then
        after = read_level(number .. string.char(byte) .. ARGV[10], byte == first and ARGV[9] or "") or ""
        level = after ~= "" and byte or 0
    end
end
local reply, records = {"", level, after}, #ids > 0 and redis.call("HMGET", entries, unpack(fields)) or {}
for place, record in ipairs(records) do
    reply[#reply + 1] = ids[place]
    reply[#reply + 1] = record
end
return reply
