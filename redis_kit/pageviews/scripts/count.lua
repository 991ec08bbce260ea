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
-- ARGV[12]  #members   number of pages or objects
-- ARGV[13]  #referrers number of referrers
-- ARGV[14]  #campaigns number of campaigns
-- ARGV[15]  online     number of visitors, the first ones, to add to the minute
-- ARGV[16]  writer     of the batch
-- ARGV[17...]          members and the views of each, the same for referrers and campaigns, then the visitors
-- returns   1 if added, 0 if this batch was added before
--
-- Everything that can be refused is checked first, since a script can't undo its writes. Sketches are written before
-- numbers, the smallest period first: a visitor who does not change it is in the longer ones, too. The expiry of a key
-- is set when it gets a new field, member or visitor.

local number, ttl = tonumber(ARGV[1]), ARGV[3]
local may = redis.acl_check_cmd
local next_argument = 17

local function take(count)
    local texts = {}
    for place = next_argument, next_argument + count - 1 do
        texts[#texts + 1] = ARGV[place]
    end
    next_argument = next_argument + count
    return texts
end
local members, views = take(ARGV[12]), take(ARGV[12])
local hosts, host_views = take(ARGV[13]), take(ARGV[13])
local sources, source_views = take(ARGV[14]), take(ARGV[14])
local visitors = take(#ARGV - next_argument + 1)

-- Add counts to a sorted set of a limited size: "Space-Saving" of Metwally et al. (2005). A member that is new to a full
-- set takes the place of the smallest one, and its count. So members above the average of a full set are never missing,
-- and the count of a late member may be too high, by the smallest count at most.
local function add_bounded(key, members, counts)
    for place, member in ipairs(members) do
        local count = counts[place]
        if not redis.call("ZSCORE", key, member) and redis.call("ZCARD", key) >= 100 then
            count = count + redis.call("ZPOPMIN", key)[2]
        end
        redis.call("ZINCRBY", key, count, member)
    end
    redis.call("PEXPIRE", key, ttl)
end

-- Add counts to a sorted set: two commands for any number of members, as each command of a script costs more than its
-- work. A new member sets the expiry.
local function add_counts(key)
    local sums, has_new = {}, false
    for place, score in ipairs(redis.call("ZMSCORE", key, unpack(members))) do
        has_new = has_new or not score
        sums[2 * place - 1], sums[2 * place] = (score or 0) + views[place], members[place]
    end
    redis.call("ZADD", key, unpack(sums))
    if has_new then
        redis.call("PEXPIRE", key, ttl)
    end
end

-- Add counts that lose half of their weight in each half-life: the forward decay of Cormode et al. (2009), with the
-- logarithm of the sum as the score. So nothing is ever rescaled: a score is the time, in s, at which a single view
-- would weigh the same.
local function add_decayed(key, half_life, at)
    local scores = {}
    for place, low in ipairs(redis.call("ZMSCORE", key, unpack(members))) do
        local high = at + half_life * math.log(views[place]) / math.log(2)
        if low then
            low = tonumber(low)
            if low > high then
                high, low = low, high
            end
            high = high + half_life * math.log(1 + 2 ^ ((low - high) / half_life)) / math.log(2)
        end
        scores[2 * place - 1], scores[2 * place] = string.format("%.17g", high), members[place]
    end
    redis.call("ZADD", key, unpack(scores))
    redis.call("ZREMRANGEBYRANK", key, 0, -1001)
    redis.call("PEXPIRE", key, ttl)
end

-- Add visitors to sketches: of a minute, an hour, a day, a week and a month, each a key with its expiry. A visitor who
-- does not change one is in the longer ones, too; but the days of a week may be in two months. The minute gets the
-- first visitors only: the others are not online any more.
local sketches = {{KEYS[4], ARGV[5]}, {KEYS[5], ARGV[4]}, {KEYS[6], ttl}, {KEYS[7], ttl}, {KEYS[8], ttl}}
local function add_visitors(online)
    for _, sketch in ipairs(sketches) do
        local header = redis.call("GETRANGE", sketch[1], 0, 15)
        if header ~= "" and (string.sub(header, 1, 4) ~= "HYLL" or #header < 16) then
            return sketch[1] .. " is corrupt: it has no header"
        end
    end
    for place, sketch in ipairs(sketches) do
        local count = place == 1 and online or #visitors
        local changed = count > 0 and redis.pcall("PFADD", sketch[1], unpack(visitors, 1, count))
        if type(changed) == "table" then
            return sketch[1] .. " is corrupt: " .. changed.err
        elseif changed == 0 and count == #visitors and place <= 3 then
            return
        elseif changed == 1 then
            redis.call("PEXPIRE", sketch[1], sketch[2])
        end
    end
end

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
local wrong = #visitors > 0 and add_visitors(tonumber(ARGV[15]))
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
        add_counts(KEYS[place])
    end
    local at = math.min(tonumber(ARGV[8]), tonumber(redis.call("TIME")[1]))
    add_decayed(KEYS[12], tonumber(ARGV[9]), at)
end
if #hosts > 0 then
    add_bounded(KEYS[13], hosts, host_views)
end
if #sources > 0 then
    add_bounded(KEYS[14], sources, source_views)
end
if number > 0 then
    redis.call("HSET", KEYS[1], ARGV[16], number)
    redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 1
