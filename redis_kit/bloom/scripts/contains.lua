#!lua flags=no-writes
-- Look values up.
--
-- KEYS[1]     state       hash: parameters, shape and items of a filter
-- KEYS[2...]  bits        bitmap of each layer, in the order of the shape
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     sizes       bits, hashes and capacity of each layer: three doubles
-- ARGV[4]     digests     of the values, 12 bytes each
-- ARGV[5]     guard       "1" if only a complete filter may answer
-- returns     "0" or "1" for each value, and ""; or nothing, a reason, and the stored parameters and shape

local state, parameters, shape = KEYS[1], ARGV[1], ARGV[2]
-- @include _layers
-- @include redis_kit.core.indexes:_identity
local stored = redis.call("HMGET", state, "parameters", "shape", "complete")
if (stored[1] or parameters) ~= parameters or (stored[2] or "") ~= shape then
    return {"", "stale", stored[1] or "", stored[2] or ""}
end
local generations = read_generations(shape, ARGV[3], 2)
-- A complete filter was switched to by a rebuild in this process of the server, and none of its bitmaps was evicted.
if ARGV[5] == "1" then
    local complete = #generations > 0 and stored[3] == generations[1].id .. " " .. read_identity()
    if not complete or redis.call("EXISTS", unpack(KEYS)) < #KEYS then
        return {"", "incomplete"}
    end
end

local digests, answers = ARGV[4], {}
for start = 1, #digests, 12 do
    local first, step = struct.unpack("<I6I6", digests, start)
    local answer = "0"
    for _, generation in ipairs(generations) do
        if not generation.is_shadow and is_in(KEYS, generation, first, step, #generation.layers) then
            answer = "1"
            break
        end
    end
    answers[#answers + 1] = answer
end
return {table.concat(answers), ""}
