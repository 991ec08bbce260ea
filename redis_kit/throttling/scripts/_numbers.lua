-- Return the whole numbers in a text.
local function numbers(text)
    local found = {}
    for number in string.gmatch(text, "%d+") do
        found[#found + 1] = tonumber(number)
    end
    return found
end

-- Return the numbers of 8 bytes each in a text.
local function doubles(text)
    local found = {struct.unpack("<" .. string.rep("d", #text / 8), text)}
    found[#found] = nil -- where the last one ended
    return found
end
