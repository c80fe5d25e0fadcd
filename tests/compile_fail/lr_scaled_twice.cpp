// expect: a field follows one schedule: learning_rate and vary, which replace it, exclude scale_learning_rate and scale, which multiply it
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::scale<&ds::adamw::lr>(ds::constant{1}),
                    ds::scale_learning_rate(ds::linear{1, 0, 9})};
}
