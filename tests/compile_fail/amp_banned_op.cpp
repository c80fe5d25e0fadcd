// expect: use binary_cross_entropy_with_logits
#include <descent/presets/amp.hpp>
namespace ds = descent;

using type = ds::amp::compute_t<ds::amp::op::binary_cross_entropy, ds::half, float>;
