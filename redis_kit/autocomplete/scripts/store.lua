#!lua
-- Store, use and remove entries in the active generation and in the one that a rebuild fills.
--
-- KEYS[1]     state       hash: parameters and shape of an index, and the number of its scopes
-- KEYS[2]     lease       string: the token of a rebuild
-- KEYS[3]     writer      string: the token of the process that follows a model
-- KEYS[4...]  keys        terms, entries and scopes of each generation, in the order of the shape
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     token       of the writer; "" if it is not compared
-- ARGV[4]     rebuild     that calls, by its generation; then only that is changed. "" for others
-- ARGV[5]     ttl         of the rebuild's lease, ms
-- ARGV[6]     half life   of uses, ms: a use weighs more the later it is (Cormode et al.: Forward Decay, 2009)
-- ARGV[7...]  entries     scope, field, weight, spellings and the rest of the record of each; in place of a weight "use"
--                         to count a use, and "" to remove it
-- returns     number of entries that were added, used or removed; a reason why none was, or ""; stored parameters, shape

local state, lease, rebuild = KEYS[1], KEYS[2], ARGV[4]
-- @check_types lease
-- @include _terms
if ARGV[3] ~= "" and redis.call("GET", KEYS[3]) ~= ARGV[3] then return {0, "lost"} end
local stored, targets, active, last, key = redis.call("HMGET", state, "parameters", "shape"), {}, nil, {}, 4
for mark, id in string.gmatch(ARGV[2], "(%+?)(%w+):%d+") do
    last = {shadow = mark == "+" and id, terms = KEYS[key], entries = KEYS[key + 1], scopes = KEYS[key + 2]}
    last.since = tonumber(redis.call("HGET", state, "since:" .. id) or "0")
    redis.call("HLEN", last.scopes) -- a key of another type fails here, before the first write
    last.is_evicted = (redis.call("ZCARD", last.terms) == 0) ~= (redis.call("HLEN", last.entries) == 0)
    active = active or not last.shadow and last or nil
    targets[#targets + 1] = (rebuild == "" or last.shadow) and last or nil
    key = key + 3
end
local has_target = rebuild == "" and active or last.shadow == rebuild
if not has_target or stored[1] ~= ARGV[1] or stored[2] ~= ARGV[2] then
    return {0, "stale", stored[1] or "", stored[2] or ""}
elseif rebuild ~= "" then
    redis.call("SET", lease, rebuild, "PX", ARGV[5])
elseif last.shadow and redis.call("EXISTS", lease) == 0 then
    return {0, "dead"}
end
local clock = redis.call("TIME")
local now, half_life, changes = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[6]), 0
local function read(generation, field)
    local record, pattern = redis.call("HGET", generation.entries, field) or "", "^(.-)\1(.-)\1(.-)\1(.-)\1(.*)$"
    local base, used, number, spellings, rest = string.match(record, pattern)
    return base and {base = base, used = used, number = number, spellings = spellings, rest = rest}
end

-- The number of a scope, which it gets with its first entry; none is the beginning of another one. Notes a level.
local function number_of(generation, scope, level)
    local number, levels = string.match(redis.call("HGET", generation.scopes, scope) or "", "^(%w+)\1(.*)$")
    if not number then
        local digits = string.format("%x", redis.call("HINCRBY", state, "scopes", 1))
        number, levels = #digits .. digits, ""
    end
    if not string.find(levels, level, 1, true) then
        redis.call("HSET", generation.scopes, scope, number .. "\1" .. levels .. level)
    end
    return number
end

for argument = 7, #ARGV, 5 do
    local scope, field, weight, spellings, rest = unpack(ARGV, argument, argument + 4)
    for place, each in ipairs(targets) do
        local old, new, terms, id = read(each, field), nil, {}, string.match(field, "[^\2]*$")
        local number = string.match(redis.call("HGET", each.scopes, scope) or "", "^%w+")
        if weight == "use" and old and old.number == number then
            local elapsed = math.max(0, math.min((now - each.since) / half_life, 200)) -- without a rebuild it ends there
            new = {base = old.base, used = old.used + 2 ^ elapsed, spellings = old.spellings, rest = old.rest}
        elseif tonumber(weight) then
            -- The uses of an entry that the rebuild has not stored yet, as they count in its generation.
            local other = each.shadow and active and read(active, field)
            local carried = other and other.used / 2 ^ ((each.since - active.since) / half_life) or 0
            new = {base = weight, used = old and old.used or carried, spellings = spellings, rest = rest}
        end
        local is_removal = weight == "" and old and (scope == "" or old.number == number)
        if old and (new or is_removal) then
            note_terms(terms, old, id, false)
            redis.call("HDEL", each.entries, field)
        end
        if new then
            new.number = number_of(each, scope, level_of(new.base + new.used))
            note_terms(terms, new, id, true)
            local record = {new.base, string.format("%.17g", new.used), new.number, new.spellings, new.rest}
            redis.call("HSET", each.entries, field, table.concat(record, "\1"))
        end
        for term, is_wanted in pairs(terms) do
            set_term(each.terms, term, is_wanted)
        end
        local is_change = weight == "use" and new or is_removal or tonumber(weight) and not old
        changes = changes + (place == 1 and is_change and 1 or 0)
        if each.is_evicted then redis.call("HDEL", state, "complete", "building") end
    end
end
return {changes, ""}
