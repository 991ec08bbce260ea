-- What scripts do about unique keys, each part at a hook of theirs.
-- @on on_check
-- @keys unique, owners
-- @check_types unique, owners
-- @on on_end
-- @keys unique, owners
for _, id in ipairs(ids) do
    local owned = redis.call("HGET", owners, id)
    local key = string.match(owned or "", "^%l+ (.*)$") or ""
    if owned then redis.call("HDEL", owners, id) end
    if owned and redis.call("HGET", unique, key) == id then redis.call("HDEL", unique, key) end
end
-- @on on_requeue
-- @include _holder
local owned = string.match(redis.call("HGET", owners, id) or "", "^%l+ (.*)$")
if owned and not unique_holder(owned) then redis.call("HSET", unique, owned, id) end
-- @on on_look_up
-- @include _holder
holder = holder or unique_holder(key)
-- @on on_hold
-- Give a new job its unique key: until it is "done", or no more "queued", or for as many ms.
-- @keys unique, owners, period
if tonumber(ending) then
    redis.call("SET", period, id, "PX", ending)
else
    redis.call("HSET", owners, id, ending .. " " .. key)
    redis.call("HSET", unique, key, id)
    use_feature(2)
end
-- @on on_details
-- @keys unique, owners
local owned = redis.call("HGET", owners, id) or ""
if redis.call("HGET", unique, string.match(owned, "^%l+ (.*)$") or "") == id then reply[8] = owned end
-- @on on_sweep
-- @keys owners
used = used + 2 * redis.call("EXISTS", owners)
