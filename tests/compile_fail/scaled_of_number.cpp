// expect: scaled<S>: S must be a schedule, 'double operator()(std::int64_t step) const'
#include <descent/schedules/combine.hpp>

auto const schedule = descent::scaled{0.5, 1e-3};
