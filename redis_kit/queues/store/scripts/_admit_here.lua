-- Have lanes go on that wait because of what other workers run. At most 100 limits are looked at, from any one on; if there are
-- more, the worker is to ask again soon.
-- needs  parked, clock, admit, note_start
-- gives  admit_here
local function admit_here()
    local first, last = "[turn\nworker:", "(turn\nworker;"
    local count = redis.call("ZLEXCOUNT", parked, first, last)
    local skipped = count > 100 and tonumber(clock[2]) % count or 0
    local member = count > 0 and redis.call("ZRANGEBYLEX", parked, first, last, "LIMIT", skipped, 1)[1]
    for _ = 1, 100 do
        local name = string.match(member or "", "^turn\n([^\n]*)")
        if not name then break end
        admit(name)
        member = redis.call("ZRANGEBYLEX", parked, "(turn\n" .. name .. "\11", last, "LIMIT", 0, 1)[1]
    end
    if member or skipped > 0 then note_start(clock[1] * 1000000 + clock[2] + 100000) end
end
