-- Returns a place as ZADD takes it: what something else wrote may be no number, and then the job is the first of its queue.
local function sound(text)
    local number = tonumber(text)
    return number and number == number and string.format("%.17g", number) or "-inf"
end
