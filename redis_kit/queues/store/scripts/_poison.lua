-- Buries a job with which too many workers died, and adds its id, why, and the first bytes of its body to a reply. Needs
-- _bury.
local function poison(reply, id, crashes, payload)
    local reason = string.format("poison: %d workers died with it", crashes)
    local body = string.match(payload, "^~[^\n]*\n()") or 1
    bury(id, reason)
    for _, item in ipairs({id, reason, string.sub(payload, body, body + 511)}) do
        table.insert(reply, item)
    end
end
