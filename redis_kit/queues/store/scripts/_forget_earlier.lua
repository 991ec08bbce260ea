-- Remove what is left of an earlier job of this id, which is dead or was cancelled.
-- needs  dead, reasons, cancels, lanes, has_unique_keys, free_unique_key
-- gives  forget_earlier
local function forget_earlier(id, died)
    if died then
        free_unique_key(id, has_unique_keys())
        redis.call("ZREM", dead, id)
        redis.call("HDEL", reasons, id)
        redis.call("HDEL", lanes, id)
    end
    redis.call("HDEL", cancels, id)
end
