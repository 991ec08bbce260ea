#!lua
-- Let one call pass if every throttle asked has room for it, or else take nothing from any.
--
-- KEYS[1...]  keys      six for each throttle: state of the caller (the strategy's), standing of the caller (string),
--                       override (string), minutes (string, see minutes.lua), offenders (zset: caller -> refusals),
--                       rules (zset: caller -> when the ban ends, ms)
-- ARGV[1]     numbers   now in microseconds for a clock of one's own, or -1 for the server's; 1 to consume, or 0 to only
--                       look; then for each throttle: cost, calls that the process refused by itself since it last
--                       asked, those of them by this caller
-- ARGV[2...]  calls     for each throttle: strategy, caller as offenders and rules name it ("" names nobody), "shadow" to
--                       never refuse or else the ban as "after within seconds..." or "", the numbers of its rates
-- returns     for one throttle a text, for several a list of them: the numbers now, 0 for no room, 1 for room or 2 where
--             the call was counted, how many figures, the strategy's figures; behind them the rule that held, or ""
--
-- Numbers are 8 bytes each, little-endian, doubles in arguments and integers in replies: half the work of writing and
-- reading them as text.
-- A standing or an override is "x" for exempt or "r <strategy> <numbers>#<rates>" for other rates; a standing may be
-- "b <until> <bans>" for banned, or "s <refusals> <since> <bans>", which counts towards a ban, as well.

local strategies = {}
-- @include _numbers
-- @strategies
local RING, COUNT, MOST, DAY = 4320, 2 ^ 32, 100, 86400
local clock, sent = redis.call("TIME"), doubles(ARGV[1])
local now = sent[1] >= 0 and sent[1] or clock[1] * 1000000 + clock[2]
local consume = sent[2] == 1

-- Keys expire by the server's clock, and a clock of one's own may be slower: it is given a day.
local function keep(key)
    if sent[1] >= 0 then
        redis.call("EXPIRE", key, DAY, "GT")
    end
end

-- @include _counting

local calls, passes = {}, true
for place = 1, #KEYS / 6 do
    local key, arg = 6 * place - 5, 4 * place - 2
    local one = {
        key = key, arg = arg, kind = ARGV[arg], rates = doubles(ARGV[arg + 3]), cost = sent[3 * place],
        unseen = sent[3 * place + 1], mine = sent[3 * place + 2], rule = "", room = true, back = false, figures = false,
        history = false, own = false
    }
    local standing, override = redis.call("GET", KEYS[key + 1]), redis.call("GET", KEYS[key + 2])
    if standing or override then
-- @include _standing
        one.rule, one.history, one.own = ruled(one, standing or "", override or "")
    end
    local what = string.sub(one.rule, 1, 1)
    if what == "b" then
        one.room = false
    elseif what == "r" then
        local fine, room, figures, back = pcall(strategies[one.kind].look, KEYS[key], now, one.cost, one.rates)
        if not fine then
            local wrong = "WRONGTYPE A rule for other rates has not as many numbers as they need."
            return type(room) == "table" and room or redis.error_reply(wrong)
        end
        one.room, one.figures, one.back = room, figures, back
    elseif what ~= "x" then
        one.room, one.figures, one.back = strategies[one.kind].look(KEYS[key], now, one.cost, one.rates)
    end
    -- A key of another type is to be found before anything is written. Where one throttle is asked and has room, the
    -- first thing written is its minutes.
    if #KEYS > 6 or not one.room then
        redis.call("STRLEN", KEYS[key + 3])
        redis.call("ZCARD", KEYS[key + 4])
        redis.call("ZCARD", KEYS[key + 5])
    end
    passes = passes and (one.room or ARGV[arg + 2] == "shadow")
    calls[place] = one
end

local reply = {}
for place, one in ipairs(calls) do
    local figures, counted = one.figures or {}, one.room and passes and consume
    if consume then
        local refused = (one.room and 0 or 1) + one.unseen
        if counted then
            count(KEYS[one.key + 3], slot, 1)
        end
        if refused > 0 then
            count(KEYS[one.key + 3], slot + 1, refused)
        end
        if one.figures and (counted or one.back) then
            strategies[one.kind].take(KEYS[one.key], now, counted and one.cost or 0, one.rates, figures, one.back)
            keep(KEYS[one.key])
        end
        if not one.room then
-- @include _refusal
            refuse(one)
        end
    end
    local format = "<" .. string.rep("i8", #figures + 3)
    reply[place] = struct.pack(format, now, counted and 2 or one.room and 1 or 0, #figures, unpack(figures)) .. one.rule
end
return #reply == 1 and reply[1] or reply
