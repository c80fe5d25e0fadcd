// expect: each must be double, float, half or bfloat16
#include <descent/parameters.hpp>

descent::parameters<int> params;
