-- Count a refusal: among the most refused identities, and towards a ban.
-- needs  DAY, now, custom, numbers
-- gives  offend, strike, refuse

-- Metwally's space saving (2005): a full list replaces its least refused entry, and keeps that entry's count.
local function offend(offenders, entry, refusals)
    if not redis.call("ZSCORE", offenders, entry) and redis.call("ZCARD", offenders) >= 100 then
        refusals = refusals + tonumber(redis.call("ZPOPMIN", offenders)[2])
    end
    redis.call("ZINCRBY", offenders, refusals, entry)
    redis.call("EXPIRE", offenders, DAY, "NX")
end

-- Each ban has the next of the lengths of the throttle's ban. Return the ban, if there is one now.
local function strike(history, ban, refusals, entry, standing, rules)
    local since, bans, length, rule = history[2], history[3], ban[2], nil
    if since + length <= now then
        since = now
    else
        refusals = refusals + history[1]
    end
    if refusals >= ban[1] then
        length, bans = ban[math.min(bans + 3, #ban)], bans + 1
        rule = string.format("b %.0f %.0f", now + length, bans)
        redis.call("ZADD", rules, math.floor((now + length) / 1000), entry)
        redis.call("ZREMRANGEBYSCORE", rules, "-inf", math.floor(now / 1000))
        redis.call("ZREMRANGEBYRANK", rules, 0, -10001)
        redis.call("EXPIRE", rules, 366 * DAY)
    end
    local text = rule or string.format("s %.0f %.0f %.0f", refusals, since, bans)
    redis.call("SET", standing, text, "PX", math.ceil(length / 1000) + (bans > 0 and DAY * 1000 or 0))
    if custom then -- see decide.lua
        redis.call("EXPIRE", standing, DAY, "GT")
    end
    return rule
end

-- Count a refusal of a call whose text is given, see decide.lua. Return its rule, after a ban if there is one now.
local function refuse(text, repeats, history, standing, offenders, rules, rule)
    local ban, entry = string.match(text, "^%S+ ([^\n]*)\n(.*)$")
    offend(offenders, entry, 1 + repeats)
    if ban ~= "" and ban ~= "shadow" and history ~= false then
        local new = strike(history or {0, 0, 0}, numbers(ban), 1 + repeats, entry, standing, rules)
        return new and new .. " " .. rule or rule
    end
    return rule
end
