// expect: chain{transforms..., rule}: two parts take random normals, which would be the same numbers
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::gradient_noise{}, ds::gradient_noise{.seed = 1}, ds::sgd{}};
