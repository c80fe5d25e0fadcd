// expect: gradient_noise: the rule takes random normals itself; noise comes from the rule or from the policy
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::chain{ds::gradient_noise{}, ds::sgd{}}, ds::gradient_noise{}};
}
