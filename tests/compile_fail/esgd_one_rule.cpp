// expect: esgd: the rules are a range, such as std::vector{adamw{}, adamw{.lr = 1e-4}}, or of std::variant<...> where there are several types
#include <descent/descent.hpp>
#include <descent/minimizers/esgd.hpp>

void f(descent::parameters<float> const& params) {
  descent::esgd_optimizer opt{params, descent::sgd{}};
}
