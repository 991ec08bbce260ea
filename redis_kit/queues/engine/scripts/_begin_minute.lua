-- Begin a minute: what is counted lasts for 72 hours from now, and some of what is older goes, more than a minute adds.
-- needs  minutes, first_field
-- gives  begin_minute
local function begin_minute()
    redis.call("PEXPIRE", minutes, 72 * 3600 * 1000)
    for _, field in ipairs(redis.call("HRANDFIELD", minutes, 20)) do
        if (tonumber(field) or 0) < first_field - 4 * 4320 then redis.call("HDEL", minutes, field) end
    end
end
