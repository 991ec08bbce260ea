#!lua flags=no-writes
-- Return nodes of a workflow in the order of their numbers.
--
-- @keys steps, states, errors
-- ARGV[1]  first    number
-- ARGV[2]  last     number
-- returns  number, beginning of the node, state and error of each

-- @include _node_start
local numbers, reply = {}, {}
for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    numbers[#numbers + 1] = tostring(number)
end
local words, texts = redis.call("HMGET", states, unpack(numbers)), redis.call("HMGET", errors, unpack(numbers))
for at, number in ipairs(numbers) do
    local node = node_start(number)
    if node ~= "" then
        for _, part in ipairs({number, node, words[at] or "", texts[at] or ""}) do reply[#reply + 1] = part end
    end
end
return reply
