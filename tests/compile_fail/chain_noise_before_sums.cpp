// expect: chain{transforms..., rule}: noise must not stand before a part with sums
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::gradient_noise{}, ds::lamb{}};
