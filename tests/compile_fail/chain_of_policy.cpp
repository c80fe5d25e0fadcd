// expect: chain{transforms..., rule}: what stands before the rule are gradient transforms
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::clip_norm{1}, ds::adam{}};
