-- Add counts that lose half of their weight in each half-life: the forward decay of Cormode et al. (2009), with the
-- logarithm of the sum as the score. So nothing is ever rescaled: a score is the time, in s, at which a single view
-- would weigh the same.
-- needs  nothing
-- gives  add_decayed

local function add_decayed(key, most, half_life, at, counts)
    local members, scores = {}, {}
    for place = 2, #counts, 2 do
        members[place / 2] = counts[place - 1]
    end
    for place, low in ipairs(redis.call("ZMSCORE", key, unpack(members))) do
        local high = at + half_life * math.log(counts[2 * place]) / math.log(2)
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
    redis.call("ZREMRANGEBYRANK", key, 0, -1 - most)
end
