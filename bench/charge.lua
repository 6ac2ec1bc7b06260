-- wrk: posts charges. Arguments: the API key, and the beginning of the idempotency keys; with "one" as the third, all
-- requests have one key, so that all but the first are replays. In the end it prints one line of figures for bench/run.
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

function init(arguments)
    headers = {
        ["Authorization"] = "Bearer " .. arguments[1],
        ["Content-Type"] = "application/x-www-form-urlencoded",
    }
    beginning, one = arguments[2], arguments[3] == "one"
    count = 0
end

function request()
    count = count + 1
    headers["Idempotency-Key"] = one and beginning or string.format("%s-%d-%d", beginning, number, count)
    return wrk.format("POST", "/v1/charges", headers, "amount=2000&currency=usd&source=tok_visa")
end

function done(summary, latency)
    local failed = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
        + summary.errors.timeout
    print(string.format("figures %.0f %.2f %.2f %d", summary.requests / summary.duration * 1e6,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000, failed))
end
