-- The state of a user, packed: in that form it takes least of the server's time and memory.
--
-- needs  nothing
-- gives  read_state, write_state, answer
--
-- last     last day of the latest streak, with the frozen days behind it; 0 if there is none
-- streak   number of sign-ins of that streak
-- longest  of the longest streak
-- total    number of sign-ins
-- first    day of the first sign-in; 0 if there is none
-- place    in the bitmaps of days; -1 if there is none
-- frozen   latest frozen day; 0 if there is none
-- before   longest streak before the latest change
-- token    of the call that made it, 8 bytes
-- zone     of the latest sign-in at a time, not on a date: seconds from UTC to the start of a day, and the zone's name

local function read_state(key)
    local known = redis.call("GET", key)
    if not known then
        return 0, 0, 0, 0, 0, -1, 0, 0, "", ""
    end
    local last, streak, longest, total, first, place, frozen, before, token =
        struct.unpack("<I4I4I4I4I4i4I4I4c8", known)
    return last, streak, longest, total, first, place, frozen, before, token, string.sub(known, 41)
end

local function write_state(key, zone, ...)
    redis.call("SET", key, struct.pack("<I4I4I4I4I4i4I4I4c8", ...) .. zone)
end

local function answer(new, streak, longest, total, before)
    return struct.pack("<I4I4I4I4I4", new and 1 or 0, streak, longest, total, before)
end
