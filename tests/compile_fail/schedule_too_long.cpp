// expect: multi_step<N>: N must be 1 to 256: kernels take it by value
#include <descent/schedules/decay.hpp>

descent::multi_step<257> const too_long{};
