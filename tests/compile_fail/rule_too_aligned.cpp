// expect: a rule and its memory must be trivially copyable, with at most the alignment that operator new gives
#include <descent/descent.hpp>
namespace ds = descent;

struct alignas(64) aligned : ds::sgd {};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, aligned{}}; }
