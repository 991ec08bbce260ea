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
-- ARGV[6]     half life   of uses, ms
-- ARGV[7...]  entries     scope, field, weight, spellings and the rest of the record of each; the weight is "use" to count
--                         a use, and "" to remove it
-- returns     number of entries that were added, used or removed; a reason why nothing was done, or ""; and the stored
--             parameters and shape
--
-- Weights decay forwards (Cormode et al.: Forward Decay, 2009): a use weighs more the later it is, so the order of
-- entries changes only with a write.

local state, lease, parameters, shape, token, rebuild = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- @check_types lease
if token ~= "" and redis.call("GET", KEYS[3]) ~= token then
    return {0, "lost"}
end
-- @include _terms
local stored, targets, active, last, key = redis.call("HMGET", state, "parameters", "shape"), {}, nil, nil, 4
for mark, id in string.gmatch(shape, "(%+?)(%w+):%d+") do
    last = {id = id, is_shadow = mark == "+", terms = KEYS[key], entries = KEYS[key + 1], scopes = KEYS[key + 2]}
    last.since = tonumber(redis.call("HGET", state, "since:" .. id) or "0")
    redis.call("HLEN", last.scopes) -- a key of another type fails here, before the first write
    last.is_evicted = (redis.call("ZCARD", last.terms) == 0) ~= (redis.call("HLEN", last.entries) == 0)
    active = active or not last.is_shadow and last or nil
    targets[#targets + 1] = (rebuild == "" or last.is_shadow) and last or nil
    key = key + 3
end
local has_target = active
if rebuild ~= "" then
    has_target = last and last.is_shadow and last.id == rebuild
end
if not has_target or stored[1] ~= parameters or stored[2] ~= shape then
    return {0, "stale", stored[1] or "", stored[2] or ""}
elseif rebuild ~= "" then
    redis.call("SET", lease, rebuild, "PX", ARGV[5])
elseif last.is_shadow and redis.call("EXISTS", lease) == 0 then
    return {0, "dead"}
end

local clock = redis.call("TIME")
local now, half_life, changes = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[6]), 0
local function read(generation, field)
    local base, used, number, spellings, rest = string.match(
        redis.call("HGET", generation.entries, field) or "", "^([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1(.*)$")
    return number and {base = tonumber(base) or 0, used = tonumber(used) or 0, number = number, spellings = spellings, rest = rest}
end

-- The number of a scope, which it gets with its first entry; no number is the beginning of another one. The scope's
-- levels contain that of this weight afterwards.
local function number_of(generation, scope, weight)
    local number, levels = string.match(redis.call("HGET", generation.scopes, scope) or "", "^(%w+)\1(.*)$")
    if not number then
        local digits = string.format("%x", redis.call("HINCRBY", state, "scopes", 1))
        number, levels = #digits .. digits, ""
    end
    if not string.find(levels, level_of(weight), 1, true) then
        redis.call("HSET", generation.scopes, scope, number .. "\1" .. levels .. level_of(weight))
    end
    return number
end

for argument = 7, #ARGV, 5 do
    local scope, field, weight, spellings, rest = unpack(ARGV, argument, argument + 4)
    for place, each in ipairs(targets) do
        if each.is_evicted then
            redis.call("HDEL", state, "complete", "building")
        end
        local old, new, terms = read(each, field), nil, {}
        if weight == "use" and old then
            local elapsed = math.max(0, math.min((now - each.since) / half_life, 200)) -- without a rebuild it ends there
            new = {base = old.base, used = old.used + 2 ^ elapsed, spellings = old.spellings, rest = old.rest}
        elseif tonumber(weight) then
            -- The uses of an entry that the rebuild has not stored yet, as they count in its generation.
            local other = each.is_shadow and active and read(active, field)
            local carried = other and other.used / 2 ^ ((each.since - active.since) / half_life) or 0
            new = {base = tonumber(weight), used = old and old.used or carried, spellings = spellings, rest = rest}
        end
        if old then
            terms_of(old, string.match(field, "[^\2]*$"), terms, false)
            redis.call("HDEL", each.entries, field)
        end
        if new then
            new.number = number_of(each, scope, new.base + new.used)
            terms_of(new, string.match(field, "[^\2]*$"), terms, true)
            local base, used = string.format("%.17g", new.base), string.format("%.17g", new.used)
            local record = {base == "0" and "" or base, used == "0" and "" or used, new.number, new.spellings, new.rest}
            redis.call("HSET", each.entries, field, table.concat(record, "\1"))
        end
        for term, is_wanted in pairs(terms) do
            set_term(each.terms, term, is_wanted)
        end
        local is_change = place == 1 and (new and not old or old and not tonumber(weight))
        changes = changes + (is_change and 1 or 0)
    end
end
return {changes, ""}
