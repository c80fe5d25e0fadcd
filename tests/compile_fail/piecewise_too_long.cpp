// expect: piecewise_constant<N>: N must be 1 to 128: kernels take it by value
#include <descent/schedules/table.hpp>

descent::piecewise_constant<129> const too_long{};
