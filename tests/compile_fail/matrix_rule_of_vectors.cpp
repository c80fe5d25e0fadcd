// expect: matrices{rule}: a rule for matrices needs state, terms, inputs, at(t, shape), direction, update, memory(shape), scratch(shape) and transform(work)
#include <descent/descent.hpp>
#include <descent/matrices/matrices.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::adamw{}}}; }
