// expect: chain{transforms..., rule}: each part before the rule must be a gradient transform
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::clip_norm{1}, ds::adam{}};
