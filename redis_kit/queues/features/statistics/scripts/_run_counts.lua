-- The counts of attempts in blocks. A block is its hour since 1970 in 4 bytes, the number of its counts in 2, and these: what
-- is counted in 1 byte, how many in 4. A text that is too short for that has no more blocks.
-- needs  nothing
-- gives  first_block, blocks_since
local function first_block(text, at)  -- the hour, its counts, and where the next block begins; nil at the end
    if #text < at + 5 then return nil end
    local hour, size, start = struct.unpack(">I4I2", text, at)
    if #text < start + 5 * size - 1 then return nil end
    return hour, string.sub(text, start, start + 5 * size - 1), start + 5 * size
end

local function blocks_since(text, first)  -- the blocks of this hour and later ones, given from the latest
    local kept, hour, _, next_at = 1, first_block(text, 1)
    while hour and hour >= first do
        kept = next_at
        hour, _, next_at = first_block(text, kept)
    end
    return string.sub(text, 1, kept - 1)
end
