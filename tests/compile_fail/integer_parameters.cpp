// expect: storage_type
#include <descent/parameters.hpp>

descent::parameters<int> params;
