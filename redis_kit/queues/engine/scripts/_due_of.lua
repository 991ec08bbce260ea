-- When a new job is due, as text in ms, and whether it is later than now. `wanted` is a time in ms on the server's clock,
-- or a + and the ms from now; 0 is now. A later time is rounded up, or a job could start a fraction of a ms early.
-- needs  nothing
-- gives  due_of
local function due_of(wanted, clock)
    if wanted ~= "0" then
        local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)
        local due = string.sub(wanted, 1, 1) == "+" and now + wanted or tonumber(wanted)
        if due > now then
            return string.format("%.0f", due), true
        end
    end
    return clock[1] .. string.sub("00000" .. clock[2], -6, -4), false
end
