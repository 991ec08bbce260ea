-- Make a scheduled job ready before its time. Its attempts stay counted.
-- needs  ready, scheduled, sequence, now, read_record, write_record, ready_place
-- gives  make_ready
local function make_ready(id, record)
    local last = redis.call("INCRBY", sequence, 1)
    local priority, attempts, crashes, _, payload = read_record(record)
    redis.call("ZREM", scheduled, id)
    write_record(id, priority, attempts, crashes, now, payload)
    redis.call("ZADD", ready, ready_place(id, priority, last), id)
end
