-- The head of a job's record: "<priority> <attempts> <crashes> <due>\n", with the time in ms; that of a new job is made
-- of texts. And its place among the ready jobs. A lower place is earlier: first by priority, then by the order in which
-- jobs got ready. It is exact, as it stays below 2^53, also as an argument of a command.
-- needs  nothing
-- gives  record_head, new_head, place_of
local function record_head(priority, attempts, crashes, due)
    return string.format("%.0f %.0f %.0f %.0f\n", priority, attempts, crashes, due)
end

local function new_head(priority, due)
    return priority .. " 0 0 " .. due .. "\n"
end

local function place_of(priority, sequence)
    return -priority * 2 ^ 44 + sequence
end
