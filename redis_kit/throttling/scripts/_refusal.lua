-- Count a refusal of a caller among the most refused ones, as Metwally's space saving does (2005).
local function offend(one)
    local calls = 1 + one.mine
    if not redis.call("ZSCORE", one.offenders, one.label) and redis.call("ZCARD", one.offenders) >= MOST then
        calls = calls + tonumber(redis.call("ZPOPMIN", one.offenders)[2])
    end
    redis.call("ZINCRBY", one.offenders, calls, one.label)
    redis.call("EXPIRE", one.offenders, DAY, "NX")
end

-- Count a refusal towards a ban, and impose it when it is due; each is as long as the next of the ban's lengths.
local function strike(one)
    local history = one.history or {0, 0, 0}
    local ban, refusals, since, bans = numbers(one.ban), history[1] + 1 + one.mine, history[2], history[3]
    if since + ban[2] <= now then
        refusals, since = 1 + one.mine, now
    end
    local length, banned = ban[2], refusals >= ban[1]
    if banned then
        length, bans = ban[math.min(bans + 3, #ban)], bans + 1
        one.rule = string.format("b %.0f %.0f", now + length, bans)
        redis.call("ZADD", one.rules, math.floor((now + length) / 1000), one.label)
        redis.call("ZREMRANGEBYSCORE", one.rules, "-inf", math.floor(now / 1000))
        redis.call("ZREMRANGEBYRANK", one.rules, 0, -10001)
        redis.call("EXPIRE", one.rules, 366 * DAY)
    end
    local standing = banned and one.rule or string.format("s %.0f %.0f %.0f", refusals, since, bans)
    redis.call("SET", one.standing, standing, "PX", math.ceil(length / 1000) + (bans > 0 and DAY * 1000 or 0))
    keep(one.standing)
end

local function refuse(one)
    one.standing, one.offenders, one.rules = KEYS[one.key + 1], KEYS[one.key + 4], KEYS[one.key + 5]
    one.label, one.ban = ARGV[one.arg + 1], ARGV[one.arg + 2]
    if one.label ~= "" then
        offend(one)
    end
    if one.ban ~= "" and one.ban ~= "shadow" and not one.own then
        strike(one)
    end
end
