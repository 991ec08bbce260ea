#!lua flags=no-writes
-- List the commands that the user of this connection may not run with the keys of a component. Runs none of them.
--
-- ARGV[1]     key       a key of the component, which need not exist
-- ARGV[2...]  commands  their names, with a | before a subcommand
-- returns  {1 if the user may use keys of the component, or 0; names that it may not run}

local key = ARGV[1]

-- A server has no answer for a command that it does not have, and raises an error.
-- A command with three keys is complete: servers may crash if a command is asked for that lacks arguments.
local function allowed(...)
    local known, may = pcall(redis.acl_check_cmd, ...)
    return known and may
end

if not allowed("eval", "", 1, key) then
    return { 0, {} }
end
local missing = {}
if not allowed("evalsha", "", 1, key) then
    missing[1] = "evalsha"
end
for place = 2, #ARGV do
    local command, subcommand = string.match(ARGV[place], "^(.-)|(.*)$")
    local may = command and allowed(command, subcommand, key) or not command and allowed(ARGV[place], key, key, key)
    if not may then
        missing[#missing + 1] = ARGV[place]
    end
end
return { 1, missing }
