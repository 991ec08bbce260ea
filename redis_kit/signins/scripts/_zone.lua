-- A change of the time zone between two sign-ins.
--
-- needs  nothing
-- gives  is_day_after

-- Whether the zone changed, and in the old one the day after the last one has not ended at a time in s since 1970. Then
-- the dates between the last one and that of the new zone were skipped and not missed.
local function is_day_after(last, old_zone, zone, now)
    local offset, name = string.match(old_zone, "^(%S+) (.*)$")
    if not name or zone == "" or name == string.match(zone, " (.*)$") then
        return false
    end
    return math.floor((now + offset) / 86400) + 719163 <= last + 1
end
