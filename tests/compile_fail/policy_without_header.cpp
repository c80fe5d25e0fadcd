// expect: template <class Comm, class... Options> struct replicated;  // #include <descent/ranks/parallel.hpp>
#include <descent/descent.hpp>
namespace ds = descent;

template <class Comm> void f(ds::parameters<float> const& params, Comm& comm) {
  ds::optimizer opt{params, ds::adamw{}, ds::replicated{comm}};
}
void g(ds::parameters<float> const& params, int& comm) { f(params, comm); }
