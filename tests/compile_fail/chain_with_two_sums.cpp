// expect: chain{transforms..., rule}: only one part may have sums; a second one would need another pass
#include <descent/descent.hpp>
namespace ds = descent;

ds::chain rule{ds::centralize{}, ds::lamb{}};
