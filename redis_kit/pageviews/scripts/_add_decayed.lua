-- Add counts that lose half of their weight in each half-life: the forward decay of Cormode et al. (2009), with the
-- logarithm of the sum as the score. So nothing is ever rescaled: a score is the time, in s, at which a single view
-- would weigh the same.
-- needs  nothing
-- gives  add_decayed

local function add_decayed(key, most, half_life, at, counts)
    for place = 1, #counts, 2 do
        local high = at + half_life * math.log(counts[place + 1]) / math.log(2)
        local low = redis.call("ZSCORE", key, counts[place])
        if low then
            low = tonumber(low)
            if low > high then
                high, low = low, high
            end
            high = high + half_life * math.log(1 + 2 ^ ((low - high) / half_life)) / math.log(2)
        end
        redis.call("ZADD", key, string.format("%.17g", high), counts[place])
    end
    redis.call("ZREMRANGEBYRANK", key, 0, -1 - most)
end
