// expect: esgd: train(optimizer) must take the optimizer of any rule: [&](auto& optimizer) { ... }
#include <descent/descent.hpp>
#include <descent/minimizers/esgd.hpp>

#include <variant>
#include <vector>
namespace ds = descent;

void f(ds::parameters<float> const& params, std::vector<std::variant<ds::sgd, ds::adamw>> const& rules) {
  ds::esgd_optimizer opt{params, rules};
  opt.minimize([](ds::optimizer<float, float, ds::sgd>& o) { o.step(); }, [] { return 1.0; });
}
