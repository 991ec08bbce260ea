#!lua flags=no-writes
-- Count the users of one bucket who signed in on a day.
--
-- KEYS[1]  day  bitmap: one bit for each user
-- returns  their number

return redis.call("BITCOUNT", KEYS[1])
