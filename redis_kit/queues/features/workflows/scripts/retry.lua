#!lua
-- Make some of the steps due that failed or were cancelled.
--
-- @keys meta, steps, states, groups, due, active, values, errors
-- ARGV[1]  limit   how many
-- returns  -1 if it does not exist, else how many had failed; how many are due now; then number and node of some

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- @include _nodes
-- @include _count_down
-- @include _reopen
-- @include _due_page
-- @check_types meta, steps, states, groups, due, active, values, errors
if redis.call("EXISTS", meta) == 0 then
    return {-1, 0}
end
local count, numbers = redis.call("HLEN", errors), redis.call("HRANDFIELD", errors, ARGV[1])
for _, number in ipairs(numbers) do
    reopen(number)
end
if #numbers > 0 then make_due(numbers, "0") end
return due_page("0", {count, #numbers})
