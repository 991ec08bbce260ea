-- Bury a job with which too many workers died, and add its id, the reason, and the first bytes of its body to a reply.
-- needs  bury_job, body_start
-- gives  bury_poison
local function bury_poison(reply, id, crashes, payload, any_unique)
    local reason, start = string.format("poison: %d workers died with it", crashes), body_start(payload)
    bury_job(id, reason, any_unique)
    for _, item in ipairs({id, reason, string.sub(payload, start, start + 511)}) do
        table.insert(reply, item)
    end
end
