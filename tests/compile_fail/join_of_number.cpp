// expect: join and chained: each must be a schedule, 'double operator()(std::int64_t) const'
#include <descent/schedules/constant.hpp>
#include <descent/schedules/join.hpp>

auto const schedule = descent::join{{10}, descent::constant{1e-3}, 1e-4};
