-- Return a place as ZADD takes it. If something else wrote text that is not a number, the job is the first of its queue.
-- needs  nothing
-- gives  valid_place
local function valid_place(text)
    local number = tonumber(text)
    return number and number == number and string.format("%.17g", number) or "-inf"
end
