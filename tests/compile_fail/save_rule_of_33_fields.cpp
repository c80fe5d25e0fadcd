// expect: save_file(): not all fields of this rule can be read, because it, or a field, is not an aggregate
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

struct many {
  double lr = 1, x1 = 1, x2 = 1, x3 = 1, x4 = 1, x5 = 1, x6 = 1, x7 = 1, x8 = 1, x9 = 1, x10 = 1, x11 = 1, x12 = 1,
         x13 = 1, x14 = 1, x15 = 1, x16 = 1, x17 = 1, x18 = 1, x19 = 1, x20 = 1, x21 = 1, x22 = 1, x23 = 1, x24 = 1,
         x25 = 1, x26 = 1, x27 = 1, x28 = 1, x29 = 1, x30 = 1, x31 = 1, x32 = 1;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.lr * g;
  }
};
void f(descent::optimizer<float, float, many>& opt) { descent::save_file("run", opt); }
