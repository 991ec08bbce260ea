-- Decimal numbers in text.
-- needs  nothing
-- gives  numbers

local function numbers(text)
    local values = {}
    for number in string.gmatch(text, "%d+") do
        values[#values + 1] = tonumber(number)
    end
    return values
end
