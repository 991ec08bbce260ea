#!lua
-- Add the views of one hour to a page, an object, or the site.
--
-- KEYS[1]   batches    hash: writer -> number of its last batch that was added
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
-- ARGV[15]  online     number of visitors, the first ones, to add to the minute
-- ARGV[16]  writer     of the batch
-- ARGV[17...]          those texts, then the visitors
-- returns   1 if added, 0 if this batch was added before
--
-- Everything that can be refused is checked first, since a script can't undo its writes. Sketches are written before
-- numbers, the smallest period first: a visitor who does not change it is in the longer ones, too. The expiry of a key
-- is set when it gets a new field, member or visitor.

local number, ttl = tonumber(ARGV[1]), ARGV[3]
local may = redis.acl_check_cmd
local next_argument = 17

-- @include _add_bounded
-- @include _add_counts
-- @include _add_decayed
-- @include _add_visitors

local function take(count)
    local texts = {}
    for place = next_argument, next_argument + count - 1 do
        texts[#texts + 1] = ARGV[place]
    end
    next_argument = next_argument + count
    return texts
end

local members, hosts, sources = take(ARGV[12]), take(ARGV[13]), take(ARGV[14])
local visitors = take(#ARGV - next_argument + 1)
local may_write = may("HSET", KEYS[1], 1, 1) and may("HINCRBY", KEYS[2], 1, 1) and may("PFADD", KEYS[5], 1)
    and may("PEXPIRE", KEYS[2], 1)
local may_list = #members == 0 or may("ZADD", KEYS[9], 1, 1) and may("ZMSCORE", KEYS[9], 1)
    and may("ZREMRANGEBYRANK", KEYS[12], 0, 0)
local may_list_sources = #hosts + #sources == 0 or may("ZINCRBY", KEYS[13], 1, 1) and may("ZPOPMIN", KEYS[13])
if not (may_write and may_list and may_list_sources) then
    return redis.error_reply("NOPERM Page views need the commands of their component: see the how-to about ACL")
end
if number > 0 and tonumber(redis.call("HGET", KEYS[1], ARGV[16]) or 0) >= number then
    return 0
end
local fields = {
    {KEYS[2], ARGV[6], tonumber(ARGV[10]), ARGV[4]},
    {KEYS[3], ARGV[7], tonumber(ARGV[10]), ttl},
    {KEYS[3], "b" .. ARGV[7], tonumber(ARGV[11]), ttl},
}
for _, field in ipairs(fields) do
    if field[3] > 0 and not tonumber(redis.call("HGET", field[1], field[2]) or 0) then
        return redis.error_reply("WRONGTYPE The hash " .. field[1] .. " holds no number of views")
    end
end
if #members > 0 then
    -- @check_types top_day, top_week, top_month, trending
end
if #hosts + #sources > 0 then
    -- @check_types referrers, campaigns
end
local sketches = {{KEYS[4], ARGV[5]}, {KEYS[5], ARGV[4]}, {KEYS[6], ttl}, {KEYS[7], ttl}, {KEYS[8], ttl}}
local wrong = #visitors > 0 and (wrong_sketch(sketches) or add_visitors(sketches, visitors, tonumber(ARGV[15])))
if wrong then
    return redis.error_reply("WRONGTYPE The HyperLogLog " .. wrong)
end
for _, field in ipairs(fields) do
    if field[3] > 0 and redis.call("HINCRBY", field[1], field[2], field[3]) == field[3] then
        redis.call("PEXPIRE", field[1], field[4])
    end
end
if #members > 0 then
    for place = 9, 11 do
        add_counts(KEYS[place], ttl, members)
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
    redis.call("HSET", KEYS[1], ARGV[16], number)
    redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 1
