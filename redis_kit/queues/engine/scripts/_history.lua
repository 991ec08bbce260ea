-- The payload of a job whose result is stored begins with its history: a line "~<enqueued>/<run after>/<backend>", to which
-- each attempt adds " <begun>/<worker>".
-- needs  nothing
-- gives  history_of, attempts_begun, body_start, remove_attempt
local function history_of(record)  -- nil without one; then where the body begins
    local line, start = string.match(record, "^[^\n]*\n(~[^\n]*)\n()")
    return line, start or string.match(record, "^[^\n]*\n()") or 1
end

local function attempts_begun(record)
    local _, count = string.gsub(history_of(record) or "", " ", "")
    return count
end

local function body_start(payload)
    return string.match(payload, "^~[^\n]*\n()") or 1
end

local function remove_attempt(payload)
    return (string.gsub(payload, "^(~[^\n]*) [^ \n]+\n", "%1\n"))
end
