-- Numbers in text: decimal numbers, and numbers of 8 bytes.
-- needs  nothing
-- gives  numbers, doubles

local function numbers(text)
    local found = {}
    for number in string.gmatch(text, "%d+") do
        found[#found + 1] = tonumber(number)
    end
    return found
end

local function doubles(text)
    local found = {struct.unpack("<" .. string.rep("d", #text / 8), text)}
    found[#found] = nil -- the position after the last number
    return found
end
