// expect: struct muon;        // #include <descent/rules/muon.hpp>
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}}; }
