-- Decide by a rule.
-- needs  now
-- gives  by_rule

-- Return what ``look()`` does, which gets the rates of an override. A ban leaves no room; an exemption has no figures.
local function by_rule(rule, look, state, cost, rates)
    local kind = string.sub(rule, 1, 1)
    if kind == "x" then
        return true
    end
    local valid, room, figures, back = pcall(look, state, now, cost, rates)
    if not valid then
        local wrong = "WRONGTYPE An override has fewer numbers than its rates need."
        error(type(room) == "table" and room or redis.error_reply(wrong))
    end
    if kind == "b" then
        return false, figures
    end
    return room, figures, back
end
