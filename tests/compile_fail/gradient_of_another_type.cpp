// expect: add(name, value, gradient, count or shape{rows, columns}, group{i}): value and gradient are pointers to the types of parameters<Value, Gradient>, values not const, and the group, if any, is a group
#include <descent/parameters.hpp>

void f(descent::parameters<float>& params, float* w, descent::half* dw) { params.add("w", w, dw, 8); }
