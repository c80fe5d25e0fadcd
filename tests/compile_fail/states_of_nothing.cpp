// expect: states<T...>: name one type for all members of the state, or one for each
#include <descent/policies/storage.hpp>

descent::states<> const policy;
