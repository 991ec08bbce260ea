#!lua
-- Count one call with every throttle if all of them have room for it, else with none.
--
-- KEYS[1...]  keys      six for each throttle: state of the identity (format of the strategy), standing of the identity
--                       (string), override (string), minutes (string, see minutes.lua), offenders (zset: entry ->
--                       refusals), rules (zset: entry -> when the rule ends, ms)
-- ARGV[1]     numbers   now in microseconds for a custom clock, or -1 for the server's clock; 1 to count, or 0 to only
--                       look; then for each throttle: cost, refusals that the process made from memory since it last
--                       asked, and how many of them concern this identity
-- ARGV[2...]  calls     for each throttle: strategy, entry of the identity in offenders and rules ("" to store none),
--                       "shadow" to refuse nothing, else the ban as "after within seconds..." or "", numbers of the rates
-- returns     for one throttle a text, for several a list of texts: the numbers now, 0 for no room, 1 for room or 2 for
--             counted, the number of figures, and the figures of the strategy; then the rule that applied, or ""
--
-- Numbers have 8 bytes, little-endian: doubles in arguments, integers in replies. Text would take twice as long.
-- An override is "r <strategy> <numbers>#<rates>". A standing is this too, "x" for exempt, "b <until> <bans>" for banned,
-- or "s <refusals> <since> <bans>" for refusals that count towards a ban.
-- This is one script since all throttles must decide at once. Rules and refusals are included in branches, since most
-- calls don't need their functions.

local strategies = {}
-- @include _numbers
-- @strategies
local CYCLE, COUNT, MOST, DAY = 4320, 2 ^ 32, 100, 86400
local clock, sent = redis.call("TIME"), doubles(ARGV[1])
local now = sent[1] >= 0 and sent[1] or clock[1] * 1000000 + clock[2]
local consume = sent[2] == 1
local minute = math.floor(clock[1] / 60)
local cycle, slot = math.floor(minute / CYCLE) * COUNT, minute % CYCLE * 2

-- Keys expire by the server's clock. A custom clock may be slower, so its keys live a day longer.
local function keep(key)
    if sent[1] >= 0 then
        redis.call("EXPIRE", key, DAY, "GT")
    end
end

-- @include _counting

local calls, passes = {}, true
for index = 1, #KEYS / 6 do
    local key, arg = 6 * index - 5, 4 * index - 2
    local call = {
        key = key, arg = arg, kind = ARGV[arg], rates = doubles(ARGV[arg + 3]), cost = sent[3 * index],
        unreported = sent[3 * index + 1], repeats = sent[3 * index + 2], rule = "", room = true, back = false,
        figures = false, history = false, own_rule = false
    }
    local standing, override = redis.call("GET", KEYS[key + 1]), redis.call("GET", KEYS[key + 2])
    if standing or override then
-- @include _standing
        call.rule, call.history, call.own_rule = rule_of(call, standing or "", override or "")
    end
    local first = string.sub(call.rule, 1, 1)
    if first == "b" then
        call.room = false
    elseif first == "r" then
        local valid, room, figures, back = pcall(strategies[call.kind].look, KEYS[key], now, call.cost, call.rates)
        if not valid then
            local wrong = "WRONGTYPE An override has fewer numbers than its rates need."
            return type(room) == "table" and room or redis.error_reply(wrong)
        end
        call.room, call.figures, call.back = room, figures, back
    elseif first ~= "x" then
        call.room, call.figures, call.back = strategies[call.kind].look(KEYS[key], now, call.cost, call.rates)
    end
    -- A key of a wrong type must fail before the first write, which is that to the minutes if one throttle has room.
    if #KEYS > 6 or not call.room then
        redis.call("STRLEN", KEYS[key + 3])
        redis.call("ZCARD", KEYS[key + 4])
        redis.call("ZCARD", KEYS[key + 5])
    end
    passes = passes and (call.room or ARGV[arg + 2] == "shadow")
    calls[index] = call
end

local reply = {}
for index, call in ipairs(calls) do
    local figures, counted = call.figures or {}, call.room and passes and consume
    if consume then
        local refused = (call.room and 0 or 1) + call.unreported
        if counted then
            count(KEYS[call.key + 3], slot, 1)
        end
        if refused > 0 then
            count(KEYS[call.key + 3], slot + 1, refused)
        end
        if call.figures and (counted or call.back) then
            strategies[call.kind].take(KEYS[call.key], now, counted and call.cost or 0, call.rates, figures, call.back)
            keep(KEYS[call.key])
        end
        if not call.room then
-- @include _refusal
            refuse(call)
        end
    end
    local format = "<" .. string.rep("i8", #figures + 3)
    local room = counted and 2 or call.room and 1 or 0
    reply[index] = struct.pack(format, now, room, #figures, unpack(figures)) .. call.rule
end
return #reply == 1 and reply[1] or reply
