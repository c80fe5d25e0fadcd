// expect: piecewise_constant<N>: 1 to 128 boundaries: it is a parameter of kernels
#include <descent/schedules/piecewise.hpp>

descent::piecewise_constant<129> const too_long{};
