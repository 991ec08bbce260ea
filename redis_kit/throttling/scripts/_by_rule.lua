-- Decide by a rule.
-- needs  now
-- gives  by_rule

-- Return what ``look()`` does, which gets the rates of an override; for other rules there are no figures.
local function by_rule(rule, look, state, cost, rates)
    local kind = string.sub(rule, 1, 1)
    if kind ~= "r" then
        return kind == "x"
    end
    local valid, room, figures, back = pcall(look, state, now, cost, rates)
    if not valid then
        local wrong = "WRONGTYPE An override has fewer numbers than its rates need."
        error(type(room) == "table" and room or redis.error_reply(wrong))
    end
    return room, figures, back
end
