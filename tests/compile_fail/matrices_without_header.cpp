// expect: matrices on the host: #include <descent/matrices/host.hpp>, and link a BLAS
#include <descent/descent.hpp>
#include <descent/rules/muon.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}}; }
