-- Jobs that ended without their worker.
-- needs  nothing
-- gives  note_ending
local function note_ending(id, kind, reason, record)
    -- @hook on_lost(id, kind, reason, record)
end
