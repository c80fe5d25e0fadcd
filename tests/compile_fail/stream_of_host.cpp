// expect: step(stream): the host has no streams
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, int* stream) {
  descent::optimizer opt{params, descent::sgd{}};
  opt.step(stream);
}
