// expect: multi_step<N>: 1 to 256 steps: it is a parameter of kernels
#include <descent/schedules/multi_step.hpp>

descent::multi_step<257> const too_long{};
