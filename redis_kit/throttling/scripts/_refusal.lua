-- Count a refusal: among the most refused identities, and towards a ban.
-- needs  KEYS, ARGV, MOST, DAY, now, numbers, keep
-- gives  offend, strike, refuse

-- Metwally's space saving (2005): a full list replaces its least refused entry, and keeps that entry's count.
local function offend(call)
    local refusals = 1 + call.repeats
    if not redis.call("ZSCORE", call.offenders, call.entry) and redis.call("ZCARD", call.offenders) >= MOST then
        refusals = refusals + tonumber(redis.call("ZPOPMIN", call.offenders)[2])
    end
    redis.call("ZINCRBY", call.offenders, refusals, call.entry)
    redis.call("EXPIRE", call.offenders, DAY, "NX")
end

-- Each ban has the next of the lengths of the throttle's ban.
local function strike(call)
    local history = call.history or {0, 0, 0}
    local ban, refusals, since, bans = numbers(call.ban), history[1] + 1 + call.repeats, history[2], history[3]
    if since + ban[2] <= now then
        refusals, since = 1 + call.repeats, now
    end
    local length, banned = ban[2], refusals >= ban[1]
    if banned then
        length, bans = ban[math.min(bans + 3, #ban)], bans + 1
        call.rule = string.format("b %.0f %.0f", now + length, bans)
        redis.call("ZADD", call.rules, math.floor((now + length) / 1000), call.entry)
        redis.call("ZREMRANGEBYSCORE", call.rules, "-inf", math.floor(now / 1000))
        redis.call("ZREMRANGEBYRANK", call.rules, 0, -10001)
        redis.call("EXPIRE", call.rules, 366 * DAY)
    end
    local standing = banned and call.rule or string.format("s %.0f %.0f %.0f", refusals, since, bans)
    redis.call("SET", call.standing, standing, "PX", math.ceil(length / 1000) + (bans > 0 and DAY * 1000 or 0))
    keep(call.standing)
end

local function refuse(call)
    call.standing, call.offenders, call.rules = KEYS[call.key + 1], KEYS[call.key + 4], KEYS[call.key + 5]
    call.entry, call.ban = ARGV[call.arg + 1], ARGV[call.arg + 2]
    if call.entry ~= "" then
        offend(call)
    end
    if call.ban ~= "" and call.ban ~= "shadow" and not call.own_rule then
        strike(call)
    end
end
