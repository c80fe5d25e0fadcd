// expect: table<N>: 1 to 256 values: it is a parameter of kernels
#include <descent/schedules/multiplicative.hpp>

auto const too_long = descent::multiplicative<257>(1, [](auto) { return 0.5; });
