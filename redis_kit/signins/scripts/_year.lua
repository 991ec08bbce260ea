-- The bitmap of a user's year: 46 bytes of days with a sign-in, and behind them the covered days.
--
-- needs  nothing
-- gives  join_year, pack_days, split_year, to_bits, to_bytes, unpack_days
--
-- The covered days are a bitmap, too, or they are packed: then the last bit of the 46 bytes is set, which stands for no
-- day. They are packed as bits: for each 8 days of the year a 1 and the place in three bits of each covered day, then a 0.
-- In both forms, zeros at the end are left out. Packed, 24 days take at most 18 bytes.

local BYTES = 46

local function to_bits(bytes)
    return (string.gsub(bytes, ".", function(character)
        local byte, bits = string.byte(character), {}
        for place = 1, 8 do
            bits[place] = math.floor(byte / 2 ^ (8 - place)) % 2
        end
        return table.concat(bits)
    end))
end

local function to_bytes(bits)
    return (string.gsub(bits .. string.rep("0", -#bits % 8), string.rep("%d", 8), function(byte)
        return string.char(tonumber(byte, 2))
    end))
end

local function pack_days(bitmap)
    local parts = {}
    for start = 1, 8 * BYTES, 8 do
        for place = 0, 7 do
            if string.sub(bitmap, start + place, start + place) == "1" then
                parts[#parts + 1] = "1" .. string.sub(to_bits(string.char(place)), 6)
            end
        end
        parts[#parts + 1] = "0"
    end
    return table.concat(parts)
end

local function unpack_days(bits)
    local bytes, at = {}, 1
    bits = bits .. "000" -- the end of the last place, if it was left out
    for index = 1, BYTES do
        local byte = 0
        while string.sub(bits, at, at) == "1" do
            byte = bit.bor(byte, 2 ^ (7 - tonumber(string.sub(bits, at + 1, at + 3), 2)))
            at = at + 4
        end
        bytes[index], at = string.char(byte), at + 1
    end
    return table.concat(bytes)
end

local function split_year(stored)
    local signed, covered = string.sub(stored, 1, BYTES), string.sub(stored, BYTES + 1)
    signed = signed .. string.rep("\0", BYTES - #signed)
    local last = string.byte(signed, BYTES)
    if last % 2 == 1 then
        return string.sub(signed, 1, BYTES - 1) .. string.char(last - 1), unpack_days(to_bits(covered))
    end
    return signed, covered .. string.rep("\0", BYTES - #covered)
end

local function join_year(signed, covered, may_pack)
    local bitmap = string.gsub(covered, "%z+$", "")
    if bitmap == "" then
        return (string.gsub(signed, "%z+$", ""))
    end
    local packed = may_pack and to_bytes((string.gsub(pack_days(to_bits(covered)), "0+$", "")))
    if packed and #packed < #bitmap then
        return string.sub(signed, 1, BYTES - 1) .. string.char(string.byte(signed, BYTES) + 1) .. packed
    end
    return signed .. bitmap
end
