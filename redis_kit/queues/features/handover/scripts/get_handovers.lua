#!lua flags=no-writes
-- Return how many jobs of a queue another system took, how often it did not take one, and the last error.
--
-- @keys handovers
-- returns  its fields and values

return redis.call("HGETALL", handovers)
