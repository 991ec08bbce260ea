-- Return the numbers of a rule for other rates, or nothing where it is none of this strategy.
local function rates_of(rule, kind)
    local strategy, own = string.match(rule, "^r (%S+) ([%d ]+)#")
    local found = strategy == kind and numbers(own) or {}
    for _, number in ipairs(found) do
        if number < 1 or number > 2 ^ 53 then
            return nil
        end
    end
    return #found > 0 and found or nil
end

-- Return what holds for a caller instead of the throttle's own rates ("" for nothing), what is known of its refusals,
-- and whether that rule is the caller's own. A text that is none of these holds for nothing.
local function ruled(one, standing, override)
    local ends, bans = string.match(standing, "^b (%d+) (%d+)")
    if ends and #ends < 17 and tonumber(ends) > now then
        return standing, {0, 0, 0}, true
    end
    local history = {0, 0, tonumber(bans or 0)}
    if string.find(standing, "^s %d+ %d+ %d+$") then
        history = numbers(standing)
    end
    for place, rule in ipairs({standing, override}) do
        local own = rates_of(rule, one.kind)
        if own or rule == "x" then
            one.rates = own or one.rates
            return rule, history, place == 1
        end
    end
    return "", history, false
end
