// expect: struct cuda;        // #include <descent/descent.cuh>
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params, void* stream) { ds::optimizer opt{params, ds::adamw{}, ds::cuda{stream}}; }
