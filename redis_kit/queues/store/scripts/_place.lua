-- Return a job's place among the ready ones. Lower is earlier: first by priority, then by the order in which jobs got
-- ready. Exact, as it stays below 2^53.
-- needs  nothing
-- gives  place_of
local function place_of(priority, sequence)
    return string.format("%.0f", -priority * 2 ^ 44 + sequence)
end
