// expect: chain{transforms..., rule}: only one part may take normals; two would get the same numbers
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::gradient_noise{}, ds::gradient_noise{.seed = 1}, ds::sgd{}};
