// expect: chain{transforms..., rule}: there is one rule, and it is last
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::adam{}, ds::l2{0.1}, ds::sgd{}};
