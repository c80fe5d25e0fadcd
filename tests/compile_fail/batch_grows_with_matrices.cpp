// expect: accumulate_by cannot be combined with matrices: the host must know which calls update
#include <descent/descent.hpp>
#include <descent/rules/muon.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::accumulate_by{ds::constant{2}}};
}
