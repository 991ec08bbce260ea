-- The bitmap of a user's year: 46 bytes of days with a sign-in, and behind them a bitmap of the covered days. Zeros at the end are
-- left out.
--
-- needs  nothing
-- gives  join_year, split_year

local BYTES = 46

local function split_year(stored)
    local whole = stored .. string.rep("\0", 2 * BYTES - #stored)
    return string.sub(whole, 1, BYTES), string.sub(whole, BYTES + 1, 2 * BYTES)
end

local function join_year(signed, covered)
    return (string.gsub(signed .. covered, "%z+$", ""))
end
