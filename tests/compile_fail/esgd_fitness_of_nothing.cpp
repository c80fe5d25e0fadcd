// expect: esgd: fitness() must return the loss, a number
#include <descent/descent.hpp>
#include <descent/minimizers/esgd.hpp>

#include <vector>

void f(descent::parameters<float> const& params) {
  descent::esgd_optimizer opt{params, std::vector{descent::sgd{}}};
  opt.minimize([](auto& o) { o.step(); }, [] {});
}
