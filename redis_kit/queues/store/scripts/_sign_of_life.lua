-- The end of a job is a sign of life of its worker, if that has a lease.
-- needs  workers, answers, worker, now, lease
-- gives  sign_of_life
local function sign_of_life(left)
    if left < lease * 0.95 then
        redis.call("ZADD", workers, "XX", now + lease, worker)
        redis.call("PEXPIRE", answers, 3600 * 1000)
    end
end
