-- The layers of a filter's generations.
--
-- needs  nothing
-- gives  read_generations, has, is_in, set

local PART = 268435456

-- The generations that a shape names, with the keys and sizes of their layers; the first bitmap has the number `key`.
local function read_generations(shape, sizes, key)
    local generations, at = {}, 1
    for mark, id, count in string.gmatch(shape, "(%+?)(%w+):(%d+)") do
        local layers = {}
        for number = 1, tonumber(count) do
            local bits, hashes, capacity
            bits, hashes, capacity, at = struct.unpack("<ddd", sizes, at)
            layers[number] = {key = key, bits = bits, hashes = hashes, capacity = capacity}
            key = key + math.ceil(bits / PART)
        end
        generations[#generations + 1] = {id = id, is_shadow = mark == "+", layers = layers}
    end
    return generations
end

-- The bits of a value are at first, first + step, first + 2 step ... (Kirsch, Mitzenmacher: Less Hashing, Same
-- Performance). All numbers are below 2^53, so they are exact. `has` tells whether all of them are set.
local function has(keys, layer, first, step)
    local bits = layer.bits
    local at = first % bits
    step = step % bits
    for _ = 1, layer.hashes do
        if redis.call("GETBIT", keys[layer.key + math.floor(at / PART)], at % PART) == 0 then
            return false
        end
        at = (at + step) % bits
    end
    return true
end

-- Whether one of the first layers of a generation has a value. The last ones are larger, so they are asked first.
local function is_in(keys, generation, first, step, count)
    for number = count, 1, -1 do
        if has(keys, generation.layers[number], first, step) then
            return true
        end
    end
    return false
end

-- Set all of them, and tell whether one was not.
local function set(keys, layer, first, step)
    local bits, is_new = layer.bits, false
    local at = first % bits
    step = step % bits
    for _ = 1, layer.hashes do
        if redis.call("SETBIT", keys[layer.key + math.floor(at / PART)], at % PART, 1) == 0 then
            is_new = true
        end
        at = (at + step) % bits
    end
    return is_new
end
