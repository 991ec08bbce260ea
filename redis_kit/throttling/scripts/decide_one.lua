#!lua
-- Count one call with one throttle if it has room for it.
--
-- KEYS[1]  state      of the identity, in the format of the strategy
-- KEYS[2]  standing   string: of the identity, see decide.lua
-- KEYS[3]  override   string: for all identities, see decide.lua
-- KEYS[4]  counts     hash, see minutes.lua
-- KEYS[5]  offenders  zset: entry -> refusals
-- KEYS[6]  rules      zset: entry -> when the rule ends, ms
-- KEYS[7]  latest     counter, see minutes.lua
-- ARGV[1]  call       see decide.lua. In place of 1 to count, 2 counts the call only if it has room, as for a caller that
--                     waits, and 3 counts its refusal too, but not towards a ban
-- returns  a text, see decide.lua
--
-- It does the same as decide.lua, for most calls, in two thirds of the time: every function and every table that a
-- script builds takes time. Functions that only few calls need are included in branches.

-- @strategy
local CALLS, DAY = 2 ^ 26, 86400
local state, standing, override, counts, offenders, rules, latest = unpack(KEYS)
local clock, text = redis.call("TIME"), ARGV[1]
local own, mode, cost, unreported, repeats = struct.unpack("<ddddd", text)
local rates = {struct.unpack("<@numbers", text, 49)}
local seconds, consume, custom, start = clock[1] + 0, mode > 0, own >= 0, rates[#rates]
local now, minute = custom and own or seconds * 1000000 + clock[2], (seconds - seconds % 60) / 60
local rule, history, room, figures, back = "", nil, true, nil, false
rates[#rates] = nil -- the place where the numbers end
if redis.call("EXISTS", standing, override) > 0 then
-- @include _numbers
-- @include _standing
    rule, history, rates = rule_of(standing, override, string.match(text, "^%S+", start), rates)
    if rule ~= "" then
        room, figures, back = by_rule(rule, look, state, cost, rates)
    end
end
if rule == "" then
    room, figures, back = look(state, now, cost, rates)
end

-- A key of a wrong type must fail before the first write, which is that to ``latest`` if there is room.
local refuses = not room and consume and mode ~= 2
local refused = consume and unreported + (refuses and 1 or 0) or 0
if refused > 0 then
    -- @check_types counts, offenders, rules
end
if consume and room and cost > 0 then
    local total = redis.call("INCR", latest)
    if (total - total % CALLS) / CALLS ~= minute then
-- @include _counting
        turn(latest, counts, total)
    end
end
if refused > 0 then
    local total = redis.call("HINCRBY", counts, "refused", refused)
    if (total - total % CALLS) / CALLS ~= minute then
-- @include _counting
        turn_refused(counts, total, refused)
    end
end
if figures and consume and (room or back) then
    take(state, now, room and cost or 0, rates, figures, back)
    if custom then -- its clock may be slower than the server's, by which keys expire
        redis.call("EXPIRE", state, DAY, "GT")
    end
end
if refuses then
-- @include _numbers
-- @include _refusal
    rule = refuse(string.sub(text, start), repeats, mode == 1 and history, standing, offenders, rules, rule)
end
figures = figures or {}
local format = string.sub("<i8i8i8i8i8i8i8i8i8", 1, 7 + 2 * #figures)
if #figures > 6 then
    format = "<" .. string.rep("i8", #figures + 3)
end
return struct.pack(format, now, room and (consume and 2 or 1) or 0, #figures, unpack(figures)) .. rule
