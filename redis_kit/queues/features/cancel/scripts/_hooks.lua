-- What scripts do about marks of jobs that are to be cancelled, each part at a hook of theirs.
-- @on on_check
-- @keys cancels
-- @check_types cancels
-- @on on_end
-- @keys cancels
redis.call("HDEL", cancels, unpack(ids))
-- @on on_bury
-- @keys cancels
redis.call("HDEL", cancels, id)
-- @on on_settle
-- @keys cancels
job.is_cancelled = redis.call("HEXISTS", cancels, id) == 1
-- @on on_return
-- @keys cancels
if redis.call("HEXISTS", cancels, id) == 1 then
    note_ending(id, "cancelled", "", record)
    wakes, has_ended = move(id, "running", "gone", {member = member}) or wakes, true
end
-- @on on_heartbeat
-- @keys cancels, running
if redis.call("HLEN", cancels) > 0 then
    for _, member in ipairs(redis.call("ZRANGEBYLEX", running, "[" .. worker .. "/", "(" .. worker .. "0")) do
        local id = string.match(member, "^[^/]+/[^/]+/[^/]+/(.*)$")
        if id and redis.call("HEXISTS", cancels, id) == 1 then table.insert(cancelled, id) end
    end
end
-- @on on_details
-- @keys cancels
reply[9] = redis.call("HEXISTS", cancels, id)
-- @on on_sweep
-- @keys cancels
used = used + 4 * redis.call("EXISTS", cancels)
