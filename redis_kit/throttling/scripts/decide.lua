#!lua
-- Count one call with every throttle if all of them have room for it, else with none.
--
-- KEYS[1...]  keys   seven for each throttle: state of the identity (format of the strategy), standing of the identity
--                    (string), override (string), counts (hash, see minutes.lua), offenders (zset: entry -> refusals),
--                    rules (zset: entry -> when the rule ends, ms), latest (counter, see minutes.lua)
-- ARGV[1...]  calls  for each throttle numbers: now in microseconds for a custom clock, or -1 for the server's clock; 1 to
--                    count, or 0 to only look; cost; refusals that the process made from memory since it last asked, and
--                    how many of them concern this identity; how many numbers the rates have; these numbers. Then a text:
--                    strategy, space, "shadow" to refuse nothing, else the ban as "after within seconds..." or "", line
--                    feed, entry of the identity in offenders and rules
-- returns     a text for each throttle: the numbers now, 0 for no room, 1 for room or 2 for counted, the number of
--             figures, and the figures of the strategy; then the rule that applied, or "". After a ban comes a blank,
--             then the override whose rates the figures are for, or ""
--
-- Numbers have 8 bytes, little-endian: doubles in arguments, integers in replies. Text would take twice as long.
-- An override is "r <strategy> <numbers>#<rates>". A standing is this too, "x" for exempt, "b <until> <bans>" for banned,
-- or "s <refusals> <since> <bans>" for refusals that count towards a ban.

local strategies = {}
-- @strategies
-- @include _numbers
local CALLS, DAY = 2 ^ 26, 86400
local clock = redis.call("TIME")
local seconds, custom, consume = clock[1] + 0, false, false
local now, minute, calls, passes, replies = seconds * 1000000 + clock[2], (seconds - seconds % 60) / 60, {}, true, {}
-- @include _standing
-- @include _refusal

for index = 1, #ARGV do
    local state, standing, override, counts, offenders, rules, latest = unpack(KEYS, 7 * index - 6, 7 * index)
    local own, mode, cost, unreported, repeats, count = struct.unpack("<dddddd", ARGV[index])
    local rates = {struct.unpack("<" .. string.rep("d", count), ARGV[index], 49)}
    local text = string.sub(ARGV[index], table.remove(rates)) -- removes the place where the numbers end
    local kind, rule, history, room, figures, back = string.match(text, "^%S+"), "", nil, true, nil, false
    local strategy = strategies[kind]
    custom, consume, now = own >= 0, mode == 1, own >= 0 and own or now
    if redis.call("EXISTS", standing, override) > 0 then
        rule, history, rates = rule_of(standing, override, kind, rates)
    end
    if rule == "" then
        room, figures, back = strategy.look(state, now, cost, rates)
    else
        room, figures, back = by_rule(rule, strategy.look, state, cost, rates)
    end
    -- A key of a wrong type must fail before the first write.
    redis.call("HLEN", counts)
    if not room then
        redis.call("ZCARD", offenders)
        redis.call("ZCARD", rules)
    end
    local number = redis.call("GET", latest) or "0"
    if #number > 18 or not string.find(number, "^-?%d+$") then
        return redis.error_reply("ERR value is not an integer or out of range")
    end
    passes = passes and (room or string.find(text, "^%S+ shadow\n") ~= nil)
    calls[index] = {
        text = text, take = strategy.take, rates = rates, cost = cost, repeats = repeats, unreported = unreported,
        rule = rule, history = history, room = room, figures = figures, back = back
    }
end

for index, call in ipairs(calls) do
    local state, standing, override, counts, offenders, rules, latest = unpack(KEYS, 7 * index - 6, 7 * index)
    local room, figures, rule, counted = call.room, call.figures or {}, call.rule, call.room and passes and consume
    local refused = call.unreported + (room and 0 or 1)
    if counted and call.cost > 0 then
        local total = redis.call("INCR", latest)
        if (total - total % CALLS) / CALLS ~= minute then
-- @include _counting
            turn(latest, counts, total)
        end
    end
    if consume and refused > 0 then
        local total = redis.call("HINCRBY", counts, "refused", refused)
        if (total - total % CALLS) / CALLS ~= minute then
-- @include _counting
            turn_refused(counts, total, refused)
        end
    end
    if call.figures and consume and (counted or call.back) then
        call.take(state, now, counted and call.cost or 0, call.rates, figures, call.back)
        if custom then -- its clock may be slower than the server's, by which keys expire
            redis.call("EXPIRE", state, DAY, "GT")
        end
    end
    if consume and not room then
        rule = refuse(call.text, call.repeats, call.history, standing, offenders, rules, rule)
    end
    local format = "<" .. string.rep("i8", #figures + 3)
    replies[index] = struct.pack(format, now, counted and 2 or room and 1 or 0, #figures, unpack(figures)) .. rule
end
return replies
