#!lua flags=no-writes
-- Find the entry of an identity in lists.
--
-- KEYS[1]  rules      zset: entry -> when the rule ends, ms
-- KEYS[2]  offenders  zset: entry -> refusals
-- ARGV[1]  hash       of the identity
-- returns  the entry, "" if no list has one

-- @include _entry

return entry_of(KEYS[1], ARGV[1]) or entry_of(KEYS[2], ARGV[1]) or ""
