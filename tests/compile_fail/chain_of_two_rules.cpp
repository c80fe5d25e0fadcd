// expect: chain{transforms..., rule}: only the last part may be a rule
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::adam{}, ds::l2{0.1}, ds::sgd{}};
