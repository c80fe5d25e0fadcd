// expect: fractional_epochs<F>: F must be trivially copyable and have 'double operator()(double epoch) const'
#include <descent/schedules/combine.hpp>

auto const schedule = descent::fractional_epochs{[](char const*) { return 1.0; }, 100};
