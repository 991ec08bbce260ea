#!lua
-- Add the views of one hour to a page, an object, or the site.
--
-- KEYS[1]   batch      string: number of the last batch of this writer that was added
-- KEYS[2]   hours      hash: hour of the day -> views
-- KEYS[3]   days       hash: day of the month -> views; b and the day -> requests of bots; d and it -> dropped
-- KEYS[4]   minutely   string: sketch of a minute's visitors
-- KEYS[5]   hourly     string: sketch of the hour's visitors
-- KEYS[6]   daily      string: sketch of the day's visitors
-- KEYS[7]   weekly     string: sketch of the week's visitors
-- KEYS[8]   monthly    string: sketch of the month's visitors
-- KEYS[9]   top_day    zset: page or object -> its views of the day
-- KEYS[10]  top_week   zset: of the week
-- KEYS[11]  top_month  zset: of the month
-- KEYS[12]  trending   zset: page or object -> its decayed views, as a time in s
-- KEYS[13]  referrers  zset: host -> views of the day that came from there
-- KEYS[14]  campaigns  zset: campaign -> views of the day that it brought
-- ARGV[1]   number     of the batch, growing with each batch of a writer; 0 for a batch that is never repeated
-- ARGV[2]   memory     time for which a repeated batch is recognised, ms
-- ARGV[3]   ttl        of days, weeks and months, ms
-- ARGV[4]   hour_ttl   of hours, ms
-- ARGV[5]   minute_ttl of minutes, ms
-- ARGV[6]   hour       field of the hour
-- ARGV[7]   day        field of the day
-- ARGV[8]   at         time of the last view, s
-- ARGV[9]   half_life  in which a view loses half of its weight among those that trend, s
-- ARGV[10]  views      to add
-- ARGV[11]  bots       requests of bots to add
-- ARGV[12]  #members   number of texts that follow: pages or objects, each with its views
-- ARGV[13]  #referrers number of texts that follow those: referrers, each with its views
-- ARGV[14]  #campaigns number of texts that follow those: campaigns, each with its views
-- ARGV[15...]          those texts, then the visitors
-- returns   1 if added, 0 if this batch was added before
--
-- Everything that can be refused is checked first, since a script can't undo its writes. Sketches are written before
-- numbers, the smallest period first: a visitor who does not change it is in the longer ones, too.

local number, ttl = tonumber(ARGV[1]), ARGV[3]
local may = redis.acl_check_cmd

-- @include _add_bounded
-- @include _add_decayed
local next_argument = 15

local function take(count)
    local texts = {}
    for place = next_argument, next_argument + count - 1 do
        texts[#texts + 1] = ARGV[place]
    end
    next_argument = next_argument + count
    return texts
end

if not (may("SET", KEYS[1], 1, "PX", 1) and may("HINCRBY", KEYS[2], 1, 1) and may("PFADD", KEYS[5], 1)
    and may("ZINCRBY", KEYS[9], 1, 1) and may("ZADD", KEYS[12], 1, 1) and may("ZREMRANGEBYRANK", KEYS[12], 0, 0)
    and may("ZPOPMIN", KEYS[13]) and may("PEXPIRE", KEYS[2], 1)) then
    return redis.error_reply("NOPERM Page views need SET, HINCRBY, PFADD, ZINCRBY, ZADD, ZREMRANGEBYRANK, ZPOPMIN and PEXPIRE")
end
if number > 0 and tonumber(redis.call("GET", KEYS[1]) or 0) >= number then
    return 0
end
for _, pair in ipairs({{KEYS[2], ARGV[6]}, {KEYS[3], ARGV[7]}, {KEYS[3], "b" .. ARGV[7]}}) do
    if not tonumber(redis.call("HGET", pair[1], pair[2]) or 0) then
        return redis.error_reply("WRONGTYPE The hash " .. pair[1] .. " holds no number of views")
    end
end
-- @check_types top_day, top_week, top_month, trending, referrers, campaigns
for place = 4, 8 do
    local header = redis.call("GETRANGE", KEYS[place], 0, 15)
    if header ~= "" and string.sub(header, 1, 4) ~= "HYLL" then
        return redis.error_reply("WRONGTYPE The key " .. KEYS[place] .. " holds no HyperLogLog")
    elseif header ~= "" and #header < 16 then
        return redis.error_reply("WRONGTYPE The HyperLogLog " .. KEYS[place] .. " is corrupt: it has no header")
    end
end

local members, hosts, sources = take(ARGV[12]), take(ARGV[13]), take(ARGV[14])
if #ARGV >= next_argument then
    local ttls = {ARGV[5], ARGV[4], ttl, ttl, ttl}
    for place = 4, 8 do
        local changed = redis.pcall("PFADD", KEYS[place], unpack(ARGV, next_argument))
        if type(changed) == "table" then
            return redis.error_reply("WRONGTYPE The HyperLogLog " .. KEYS[place] .. " is corrupt: " .. changed.err)
        end
        if changed == 0 and place < 7 then
            break
        end
        redis.call("PEXPIRE", KEYS[place], ttls[place - 3])
    end
end
if tonumber(ARGV[10]) > 0 then
    redis.call("HINCRBY", KEYS[2], ARGV[6], ARGV[10])
    redis.call("HINCRBY", KEYS[3], ARGV[7], ARGV[10])
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
end
if tonumber(ARGV[11]) > 0 then
    redis.call("HINCRBY", KEYS[3], "b" .. ARGV[7], ARGV[11])
end
redis.call("PEXPIRE", KEYS[3], ttl)
if #members > 0 then
    for place = 9, 11 do
        for at = 1, #members, 2 do
            redis.call("ZINCRBY", KEYS[place], members[at + 1], members[at])
        end
        redis.call("PEXPIRE", KEYS[place], ttl)
    end
    local at = math.min(tonumber(ARGV[8]), tonumber(redis.call("TIME")[1]))
    add_decayed(KEYS[12], 1000, tonumber(ARGV[9]), at, members)
    redis.call("PEXPIRE", KEYS[12], ttl)
end
for place, counts in pairs({[13] = hosts, [14] = sources}) do
    if #counts > 0 then
        add_bounded(KEYS[place], 100, counts)
        redis.call("PEXPIRE", KEYS[place], ttl)
    end
end
if number > 0 then
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
end
return 1
