// expect: vary<&rule::field>(schedule): only fields of type double can follow a schedule
#include <descent/descent.hpp>
namespace ds = descent;

auto const policy = ds::vary<&ds::sgd::nesterov>(ds::linear{});
