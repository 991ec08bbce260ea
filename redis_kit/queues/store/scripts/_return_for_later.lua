-- Return a running job with this record to its queue: it is claimed again at `at`, in ms, and is due at `due`. The attempt does
-- not count. A worker wakes up if it is the first scheduled job, or if it frees a place in a limit. For `whither` see _free_places.
-- needs  running, scheduled, member, id, first, left, read_record, write_record, remove_attempt, free_places, wake, sign_of_life,
--        remember_answer
-- gives  return_for_later
local function return_for_later(record, at, due, whither)
    local priority, attempts, crashes, _, payload = read_record(record)
    redis.call("ZREM", running, member)
    write_record(id, priority, math.max(0, attempts - 1), crashes, due, remove_attempt(payload))
    redis.call("ZADD", scheduled, string.format("%.0f", at), id)
    if free_places({id}, whither) > 0 or not first or at < tonumber(first) then
        wake()
    end
    sign_of_life(left)
    return remember_answer(member, 2)
end
