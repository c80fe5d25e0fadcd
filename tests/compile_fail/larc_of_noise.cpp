// expect: larc<Rule>: Rule is an update rule with a field lr that has no sums and takes no normals
#include <descent/descent.hpp>

descent::larc<descent::chain<descent::gradient_noise, descent::sgd>> rule;
