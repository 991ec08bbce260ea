#!lua flags=allow-oom
-- Note that steps that were due are in their queues, and return further ones.
--
-- @keys due, steps
-- ARGV[1]     owner    the step that made them due, 0 for a caller
-- ARGV[2...]  numbers  of the steps
-- returns     number and node of further steps that are due since that step ended

-- @include _due_page
-- @check_types due, steps
for at = 2, #ARGV do
    redis.call("ZREM", due, ARGV[at])
end
return due_page(ARGV[1], {})
