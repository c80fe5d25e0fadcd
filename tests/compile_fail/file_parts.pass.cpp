// Parts of a file for which the cases beside this one have others.
#include <descent/io/checkpoint.hpp>

struct position {
  int at[2];
  template <class F> void save(F const& f) const { f(std::string("at"), std::span<int const>(at)); }
  template <class F> void load(F const& f) {
    auto const x = f(std::string("at"), std::span<int const>(at));
    at[0] = x[0], at[1] = x[1];
  }
};
void f(position& at, std::vector<float>& x, std::vector<float> const& y, std::span<float> const z) {
  using descent::named, descent::each_rank;
  descent::save_file("run", named("n", 3), named("at", at), named("x", x), named("y", y), named("z", z), each_rank(at),
                     named("own", each_rank(named("x", x))));
  descent::load_file("run", named("n", at.at[0]), named("at", at), named("x", x), named("z", z), each_rank(at),
                     named("own", each_rank(named("x", x))));
}
