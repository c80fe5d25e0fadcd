// expect: warmup<S>: S must be a schedule, 'double operator()(std::int64_t step) const'
#include <descent/schedules/warmup.hpp>

descent::warmup<double> const schedule{.steps = 5, .then = 1e-3};
