-- The rule that applies to an identity, and what it decides.
-- needs  now, numbers
-- gives  rates_of, rule_of, by_rule

-- Return the numbers of an override, or nil if they are not for this strategy.
local function rates_of(rule, kind)
    local strategy, text = string.match(rule, "^r (%S+) ([%d ]+)#")
    local rates = strategy == kind and numbers(text) or {}
    for _, number in ipairs(rates) do
        if number < 1 or number > 2 ^ 53 then
            return nil
        end
    end
    return #rates > 0 and rates or nil
end

-- Return the rule that replaces the rates of the throttle ("" for none), the refusals that count towards a ban (false if
-- the rule belongs to the identity, so that none do), and the rates. A ban is followed by the override for all, if there
-- is one. Text of any other form is ignored.
local function rule_of(standing, override, kind, rates)
    local own, general = redis.call("GET", standing) or "", redis.call("GET", override) or ""
    local ends, bans = string.match(own, "^b (%d+) (%d+)")
    if ends and #ends < 17 and tonumber(ends) > now then
        local others = rates_of(general, kind)
        return string.match(own, "^b %d+ %d+") .. " " .. (others and general or ""), false, others or rates
    end
    local history = {0, 0, tonumber(bans or 0)}
    if string.find(own, "^s %d+ %d+ %d+$") then
        history = numbers(own)
    end
    for index, rule in ipairs({own, general}) do
        local others = rates_of(rule, kind)
        if others or rule == "x" then
            return rule, index == 2 and history, others or rates
        end
    end
    return "", history, rates
end

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
