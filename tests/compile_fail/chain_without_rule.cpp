// expect: chain{transforms..., rule}: the last part must be an update rule
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::clip_value{1}, ds::l2{0.1}};
