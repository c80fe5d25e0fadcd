// The smallest program that uses the library: one step of AdamW, which moves by lr against the sign of the gradient.
#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>

int main() {
  float value[3] = {1, 1, 1};
  float gradient[3] = {0.5f, -0.5f, 0.25f};
  descent::parameters<float> params;
  params.add("w", value, gradient, 3);
  descent::optimizer opt{params, descent::adamw{.lr = 0.125, .weight_decay = 0}};
  opt.step();
  std::printf("%g %g %g\n", value[0], value[1], value[2]);
  return std::fabs(value[0] - 0.875f) < 1e-5f && std::fabs(value[1] - 1.125f) < 1e-5f ? 0 : 1;
}
