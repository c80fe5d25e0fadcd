// expect: chain{transforms..., rule}: two parts have sums; those of the second would need a further pass
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::centralize{}, ds::lamb{}};
