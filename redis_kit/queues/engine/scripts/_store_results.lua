-- Store the results of jobs that are done: from ARGV[at] on the number of each, the result, and the ms to store it. Their keys are
-- from KEYS[key] on. One whose key is of a wrong type is not stored, or no job would end until that is gone. The
-- number 0 stands for the stream of done jobs: then lines about the jobs follow, and how many jobs the stream keeps.
-- needs  KEYS, ARGV, worker, store_result
-- gives  store_results
local function store_results(at, key, records)
    for at = at, #ARGV, 3 do
        local result, finished, record = KEYS[key], KEYS[key + 1], records[tonumber(ARGV[at])]
        key = key + 2
        if ARGV[at] == "0" then
            local number = 0
            for line in string.gmatch(ARGV[at + 1], "([^\n]*)\n") do  -- empty ones are of jobs that are not noted
                number = number + 1
                if line ~= "" and records[number] ~= nil then
                    redis.pcall("XADD", result, "MAXLEN", "~", ARGV[at + 2], "*", "worker", worker, "job", line)
                end
            end
        elseif record ~= nil then
            local waiting, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
            if type(waiting) ~= "table" then
                local callers = type(list) == "number" and waiting
                store_result(result, finished, ARGV[at + 2], callers, "SUCCESSFUL", record or "", "value", ARGV[at + 1])
            end
        end
    end
end
