-- Refuse a caller, note that it waits if it wants to, and return the reply.
-- needs  KEYS, ARGV, levels, waits_for, gone, weight, micros, own, wait_for_level, note_waiter, first_lease
-- gives  refuse_slots
local function refuse_slots(level, used, limit, first)
    local waiting, woken = string.match(ARGV[3], "^(%d+) (%d)")
    local before = waits_for and KEYS[4 * waits_for + 2]
    local signal = before and woken == "1" and KEYS[4 * levels + 2 + waits_for]
    local waits = waiting ~= "0" and weight <= limit and not gone
    local later = math.max((redis.call("ZSCORE", KEYS[1], "fence") or 0) + 1, micros)
    wait_for_level(KEYS[4 * level + 2], waits and waiting, before, signal)
    if waits then
        note_waiter(KEYS[1], ARGV[2 * level + 3], waiting)
    end
    local left, since, about = first_lease(first, own)
    return { left, used, limit, level, left, since, about, later }
end
