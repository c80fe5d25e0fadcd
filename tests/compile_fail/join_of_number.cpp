// expect: join and chained: each must be a schedule, 'double operator()(std::int64_t) const'
#include <descent/schedules/combine.hpp>
#include <descent/schedules/decay.hpp>

auto const schedule = descent::join{{10}, descent::constant{1e-3}, 1e-4};
