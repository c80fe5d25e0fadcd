// expect: a field follows one schedule: learning_rate and vary, which replace it, exclude scale_learning_rate and scale, which multiply it
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::scale<&ds::adamw::eps>(ds::constant{2}),
                    ds::vary<&ds::adamw::eps>(ds::linear{})};
}
