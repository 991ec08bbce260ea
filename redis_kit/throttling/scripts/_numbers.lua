-- Numbers in text: decimal numbers, and numbers of 8 bytes.
-- needs  nothing
-- gives  numbers, doubles

local function numbers(text)
    local values = {}
    for number in string.gmatch(text, "%d+") do
        values[#values + 1] = tonumber(number)
    end
    return values
end

local function doubles(text)
    local values = {struct.unpack("<" .. string.rep("d", #text / 8), text)}
    values[#values] = nil -- the position after the last number
    return values
end
