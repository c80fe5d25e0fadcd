// expect: esgd: the rules must be a range, such as std::vector{adamw{}, adamw{.lr = 1e-4}}, or a range of std::variant<...> for several types
#include <descent/descent.hpp>
#include <descent/minimizers/esgd.hpp>

void f(descent::parameters<float> const& params) { descent::esgd_optimizer opt{params, descent::sgd{}}; }
