#!lua flags=no-writes
-- Look values up.
--
-- KEYS[1]     state       hash: parameters, shape and items of a filter
-- KEYS[2...]  bits        bitmap of each layer, in the order of the shape
-- ARGV[1]     parameters  that the caller expects
-- ARGV[2]     shape       that the caller knows
-- ARGV[3]     sizes       bits, hashes and capacity of each layer: three doubles
-- ARGV[4]     digests     of the values, 12 bytes each
-- ARGV[5]     source      database whose rows the filter must have, or it does not answer; "" if it always may
-- returns     "0" or "1" for each value, and ""; or nothing, a reason, and the stored parameters and shape

local state, parameters, shape = KEYS[1], ARGV[1], ARGV[2]
-- @include _layers
-- @include redis_kit.core.indexes:_identity
-- @include _complete
local stored = redis.call("HMGET", state, "parameters", "shape", "complete")
if (stored[1] or parameters) ~= parameters or (stored[2] or "") ~= shape then
    return {"", "stale", stored[1] or "", stored[2] or ""}
end
if ARGV[5] ~= "" then
    if not is_complete(stored[3], shape, ARGV[5]) or redis.call("EXISTS", unpack(KEYS)) < #KEYS then
        return {"", "incomplete"}
    end
end

local generations, digests, answers = read_generations(shape, ARGV[3], 2), ARGV[4], {}
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
