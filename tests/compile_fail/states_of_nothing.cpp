// expect: states<T...>: name one type for all members of the state, or one for each
#include <descent/storage.hpp>

descent::states<> const policy;
