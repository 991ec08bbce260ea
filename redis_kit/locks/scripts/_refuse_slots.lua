-- Refuse a caller, note that it waits if it wants to, and return the reply.
-- needs  KEYS, ARGV, levels, waited, waits_for, gone, weight, now, micros, own, wait_for_level, note_waiter,
--        first_lease
-- gives  refuse_slots
local function refuse_slots(level, used, limit, first)
    local waiting, woken, since = string.match(ARGV[3], "^(%d+) (%d) (%d+)")
    local before = waits_for and KEYS[4 * waits_for + 2]
    local signal = before and woken == "1" and KEYS[4 * levels + 2 + waits_for]
    local waits = waiting ~= "0" and weight <= limit and not gone
    local later = math.max((redis.call("ZSCORE", KEYS[1], "fence") or 0) + 1, micros)
    wait_for_level(KEYS[4 * level + 2], waits and waiting, before, signal)
    if waits then
        note_waiter(KEYS[1], ARGV[2 * level + 3], waiting)
    elseif waited and waiting .. woken == "00" then -- its time is up
-- @include _waits
        note_wait(KEYS[#KEYS - 1], KEYS[#KEYS], ARGV[2 * levels + 3], now - since, micros, true)
    end
    local left, held_for, about = first_lease(first, own)
    return { left, used, limit, level, left, held_for, about, later }
end
