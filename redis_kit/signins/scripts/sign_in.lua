#!lua
-- Record a sign-in on a day, for one user and for all.
--
-- KEYS[1]  user     hash: last day, streak that ends there, longest streak, total, place
-- KEYS[2]  members  list: users by their place
-- KEYS[3]  active   bitmap: place -> was active on that day
-- KEYS[4...]        bitmaps of years that follow each other: day of the year -> signed in
-- ARGV[1]  day      its number
-- ARGV[2]  start    number of the first day of the first year
-- ARGV[3]  id       of the user
-- ARGV[4]  ttl      time for which active users are stored, ms
-- ARGV[5...]        lengths of the years
-- returns  {1 if the day is new, length of the streak around it, longest streak, total, longest streak before},
--          or {} if that streak extends beyond these years; then nothing was written
--
-- A place is a small number, so that large ids do not make a bitmap grow. The streak of a day after
-- the last one follows from the hash; only a day that is filled in later searches the bitmaps for its neighbours.

local day, start = tonumber(ARGV[1]), tonumber(ARGV[2])
local known = redis.call("HMGET", KEYS[1], "last", "streak", "longest", "total", "place")
local last, streak = tonumber(known[1] or -1), tonumber(known[2] or 0)
local longest, total, place = tonumber(known[3] or 0), tonumber(known[4] or 0), known[5]
-- @check_types members, active
local years, finish = {}, start
for number = 4, #KEYS do
    years[number - 3] = { key = KEYS[number], first = finish, bits = redis.call("GET", KEYS[number]) or "" }
    finish = finish + tonumber(ARGV[number + 1])
end

local function year_of(number)
    for index = #years, 1, -1 do
        if number >= years[index].first then
            return years[index], number - years[index].first
        end
    end
end

local function marked(number)
    local year, offset = year_of(number)
    local byte = string.byte(year.bits, math.floor(offset / 8) + 1) or 0
    return math.floor(byte / 2 ^ (7 - offset % 8)) % 2 == 1
end

local function neighbours(step)
    local number = day + step
    while number >= start and number < finish and marked(number) do
        number = number + step
    end
    return math.abs(number - day) - 1, number >= start and number < finish
end

local new, length = not marked(day), 1
local back, forward, seen, seen_too = 0, 0, true, true
if day == last then
    length = streak
elseif day == last + 1 then
    length = streak + 1
elseif day < last then
    back, seen = neighbours(-1)
    forward, seen_too = neighbours(1)
    length = back + 1 + forward
end
if not (seen and seen_too) then
    return {}
end
if not new then
    return { 0, length, longest, total, longest }
end

local before = longest
if day + forward >= last then
    last, streak = day + forward, length
end
longest, total = math.max(longest, length), total + 1
place = place or redis.call("RPUSH", KEYS[2], ARGV[3]) - 1
local year, offset = year_of(day)
redis.call("SETBIT", year.key, offset, 1)
redis.call("SETBIT", KEYS[3], place, 1)
redis.call("PEXPIRE", KEYS[3], ARGV[4])
redis.call("HSET", KEYS[1], "last", last, "streak", streak, "longest", longest, "total", total, "place", place)
return { 1, length, longest, total, before }
