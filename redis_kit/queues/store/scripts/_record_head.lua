-- The head of a job's record: "<priority> <attempts> <crashes> <due>\n", with the time in ms.
-- needs  nothing
-- gives  record_head
local function record_head(priority, attempts, crashes, due)
    return string.format("%.0f %.0f %.0f %.0f\n", priority, attempts, crashes, due)
end
