// expect: vary<&rule::field>(schedule): the field belongs to a rule other than the optimizer's
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::vary<&ds::adam::weight_decay>(ds::linear{})};
}
