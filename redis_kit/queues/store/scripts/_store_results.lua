-- Store the results of acknowledged jobs: from ARGV[at] on the number of each, the result, and the ms to store it. Their
-- keys are the last ones. One whose key is of a wrong type is not stored, or no job would end until that is gone.
-- needs  KEYS, ARGV, store_result
-- gives  store_results
local function store_results(at, records)
    local results = #KEYS - 2 * (#ARGV - at + 1) / 3 + 1
    for at = at, #ARGV, 3 do
        local result, finished, record = KEYS[results], KEYS[results + 1], records[tonumber(ARGV[at])]
        local waiting, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
        if record ~= nil and type(waiting) ~= "table" then
            local callers = type(list) == "number" and waiting
            store_result(result, finished, ARGV[at + 2], callers, "SUCCESSFUL", record or "", "value", ARGV[at + 1])
        end
        results = results + 2
    end
end
