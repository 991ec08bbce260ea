#!lua
-- Add days to those of a user, as the database's record has them, and work out the state again.
--
-- KEYS[1]     user       string: state
-- KEYS[2]     streaks    zset: place -> last day and length of the latest streak
-- KEYS[3]     members    list: users by their place
-- KEYS[4]     first      bitmap: place -> signed in for the first time on the earliest of these days
-- KEYS[5]     first_was  bitmap: place -> signed in for the first time on the day that is first now
-- KEYS[6...]  bitmaps    bitmap: first those of the years, which follow each other, then those of active users on days
-- ARGV[1]     id         of the user
-- ARGV[2]     ttl        time for which active users are stored, ms
-- ARGV[3]     day        number of the earliest of these days with a sign-in; 0 if there is none
-- ARGV[4]     was        number of the day of first_was
-- ARGV[5]     start      number of the first day of the first year
-- ARGV[6]     count      of the years
-- ARGV[7...]             for each year its length and its days to add: 46 bytes of sign-ins and 46 of covered days
-- returns     1, or "first <day>" if first_was is another day; then nothing was written

local ttl, earliest, count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
-- @include _state
-- @include _year
local last, streak, longest, total, first_day, place, frozen, before, token, zone = read_state(KEYS[1])
-- @check_types streaks, members, first, first_was
if earliest > 0 and first_day > earliest and first_day ~= tonumber(ARGV[4]) then
    return "first " .. first_day
end
local years = {}
for number = 1, count do
    local signed, covered = split_year(redis.call("GET", KEYS[5 + number]) or "")
    years[number] = { key = KEYS[5 + number], length = tonumber(ARGV[5 + 2 * number]), added = ARGV[6 + 2 * number],
                      stored = signed .. covered }
end
for number = 6 + count, #KEYS do
    redis.call("GETBIT", KEYS[number], 0)
end

-- A day is covered unless one of both has it as an ordinary sign-in.
local function merged(stored, added)
    local signed, covered = {}, {}
    for at = 1, 46 do
        local one, other = string.byte(stored, at), string.byte(added, at)
        local cover, other_cover = string.byte(stored, at + 46), string.byte(added, at + 46)
        local ordinary = bit.bor(bit.band(one, bit.bnot(cover)), bit.band(other, bit.bnot(other_cover)))
        signed[at] = string.char(bit.bor(one, other))
        covered[at] = string.char(bit.band(bit.bor(cover, other_cover), bit.bnot(ordinary)))
    end
    return table.concat(signed), table.concat(covered)
end

local day, run = tonumber(ARGV[5]) - 1, 0
last, streak, longest, total = 0, 0, 0, 0
for _, year in ipairs(years) do
    local signed, covered = merged(year.stored, year.added)
    local has_covered = string.find(covered, "[^%z]")
    if string.find(signed, "[^%z]") or has_covered then
        redis.call("SET", year.key, join_year(signed, covered))
        for offset = 0, year.length - 1 do
            local byte, mask = math.floor(offset / 8) + 1, 2 ^ (7 - offset % 8)
            local is_signed = bit.band(string.byte(signed, byte), mask) ~= 0
            local is_covered = bit.band(string.byte(covered, byte), mask) ~= 0
            if is_signed then
                total, run = total + 1, run + 1
                longest = math.max(longest, run)
            elseif is_covered then
                frozen = math.max(frozen, day + 1 + offset)
            else
                run = 0
            end
            if run > 0 then
                last, streak = day + 1 + offset, run
            end
        end
    else
        run = 0
    end
    day = day + year.length
end

if earliest > 0 then
    if place < 0 then
        place = redis.call("RPUSH", KEYS[3], ARGV[1]) - 1
    end
    if first_day == 0 or earliest < first_day then
        if first_day > 0 then
            redis.call("SETBIT", KEYS[5], place, 0)
        end
        redis.call("SETBIT", KEYS[4], place, 1)
        redis.call("PEXPIRE", KEYS[4], ttl)
        first_day = earliest
    end
end
for number = 6 + count, #KEYS do
    redis.call("SETBIT", KEYS[number], place, 1)
    redis.call("PEXPIRE", KEYS[number], ttl)
end
if last > 0 then
    redis.call("ZADD", KEYS[2], last * 100000 + streak, place)
end
write_state(KEYS[1], zone, last, streak, longest, total, first_day, place, frozen, longest, token == "" and "restored" or token)
return 1
