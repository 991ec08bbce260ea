-- The rule that applies to an identity.
-- needs  now, numbers
-- gives  rates_of, rule_of

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

-- Return the rule that replaces the rates of the throttle ("" for none), the refusals that count towards a ban, and
-- whether the rule belongs to the identity. Text of any other form is ignored.
local function rule_of(call, standing, override)
    local ends, bans = string.match(standing, "^b (%d+) (%d+)")
    if ends and #ends < 17 and tonumber(ends) > now then
        return standing, {0, 0, 0}, true
    end
    local history = {0, 0, tonumber(bans or 0)}
    if string.find(standing, "^s %d+ %d+ %d+$") then
        history = numbers(standing)
    end
    for index, rule in ipairs({standing, override}) do
        local rates = rates_of(rule, call.kind)
        if rates or rule == "x" then
            call.rates = rates or call.rates
            return rule, history, index == 1
        end
    end
    return "", history, false
end
