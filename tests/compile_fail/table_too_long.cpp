// expect: table<N>: N must be 1 to 256: kernels take it by value
#include <descent/schedules/table.hpp>

auto const too_long = descent::multiplicative<257>(1, [](auto) { return 0.5; });
