// expect: ranges: the names of the fields cannot be read, because this is not an aggregate of at most 32 fields
#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

struct scaled : descent::sgd {
  double by = 2;
  static constexpr descent::field_range<scaled> ranges[] = {{&scaled::by, descent::above_0}};
};
void f(descent::parameters<float> const& p) { descent::optimizer opt{p, scaled{}}; }
