-- Whether a filter has all rows of its model.
--
-- needs  read_identity
-- gives  is_complete

-- A rebuild from this database switched to its newest generation, in the present process of the server. The bitmaps
-- must be there, too: a full server may have evicted one.
local function is_complete(complete, shape, source)
    local newest = string.match(shape, "^%w+") or ""
    return string.sub(newest, 1, #source) == source and complete == newest .. " " .. read_identity()
end
