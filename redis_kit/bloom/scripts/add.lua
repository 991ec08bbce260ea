#!lua
-- Add values to the newest generation, and to the one that a rebuild fills.
--
-- KEYS[1]     state       hash: parameters, shape and items of a filter
-- KEYS[2]     lease       string: the token of a rebuild
-- KEYS[3...]  bits        bitmap of each layer, in the order of the shape
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     sizes       bits, hashes and capacity of each layer: three doubles
-- ARGV[4]     digests     of the values, 12 bytes each
-- ARGV[5]     rebuild     that calls, by its generation; then only that gets the values. "" for others
-- ARGV[6]     ttl         of the rebuild's lease, ms
-- ARGV[7]     slice       time for which a generation is the newest, ms; 0 without a window
-- returns     for each value that was added "1" if it was new, else "0"; why it stopped before the end, or ""; and then
--             the stored parameters and shape, or the generation that is full

local state, lease, parameters, shape, rebuild = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[5]
local digests, slice = ARGV[4], tonumber(ARGV[7])
-- @check_types lease
-- @include _layers
local stored = redis.call("HMGET", state, "parameters", "shape")
local generations = read_generations(shape, ARGV[3], 3)
local newest, shadow = generations[1], generations[#generations]
local has_target = newest and not newest.is_shadow
if rebuild ~= "" then
    has_target = shadow and shadow.is_shadow and shadow.id == rebuild
end
if not has_target or stored[1] ~= parameters or stored[2] ~= shape then
    return {"", "stale", stored[1] or "", stored[2] or ""}
end
local targets = shadow.is_shadow and {shadow, newest} or {newest}
if rebuild ~= "" then
    redis.call("SET", lease, rebuild, "PX", ARGV[6])
    targets = {shadow}
elseif shadow.is_shadow and redis.call("EXISTS", lease) == 0 then
    return {"", "dead"}
elseif slice > 0 then
    local clock = redis.call("TIME")
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    if now - tonumber(redis.call("HGET", state, "since:" .. newest.id)) >= slice then
        return {"", "old"}
    end
end
for _, target in ipairs(targets) do
    for _, layer in ipairs(target.layers) do
        for part = 0, math.ceil(layer.bits / PART) - 1 do
            if redis.call("EXISTS", KEYS[layer.key + part]) == 0 then -- evicted: the filter lacks what was in it
                redis.call("HDEL", state, "complete", "building")
            end
        end
    end
    target.last = target.layers[#target.layers]
    target.field = "items:" .. target.id .. ":" .. #target.layers
    target.items = tonumber(redis.call("HGET", state, target.field) or "0")
    target.added = 0
end

-- True if the value was new to the generation, and nothing if its last layer is full.
local function add(target, first, step)
    local last = target.last
    if is_in(KEYS, target, first, step, #target.layers - 1) then
        return false
    elseif target.items + target.added >= last.capacity then
        if has(KEYS, last, first, step) then
            return false
        end
        return nil
    end
    local is_new = set(KEYS, last, first, step)
    target.added = target.added + (is_new and 1 or 0)
    return is_new
end

local answers, full = {}, nil
for start = 1, #digests, 12 do
    local first, step = struct.unpack("<I6I6", digests, start)
    local is_new
    -- The shadow first: if it is full the value is added again, and the answer of the other one must not be lost.
    for _, target in ipairs(targets) do
        is_new = add(target, first, step)
        if is_new == nil then
            full = target.id
            break
        end
    end
    if full then
        break
    end
    for number = 2, rebuild == "" and is_new and #generations or 1 do
        local older = generations[number]
        is_new = is_new and (older.is_shadow or not is_in(KEYS, older, first, step, #older.layers))
    end
    answers[#answers + 1] = is_new and "1" or "0"
end
for _, target in ipairs(targets) do
    if target.added > 0 then
        redis.call("HINCRBY", state, target.field, target.added)
    end
end
return {table.concat(answers), full and "full" or "", full or ""}
