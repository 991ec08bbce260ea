#!lua flags=no-writes
-- Find out how lists name the caller with a hash.
--
-- KEYS[1]  rules      zset: caller -> when its rule ends, ms
-- KEYS[2]  offenders  zset: caller -> refusals
-- ARGV[1]  who        hash of the caller
-- returns  its label, "" where no list names it

-- @include _labelled

return labelled(KEYS[1], ARGV[1]) or labelled(KEYS[2], ARGV[1]) or ""
