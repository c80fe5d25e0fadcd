// expect: layerwise<Rule>: the step of Rule depends on the parameter itself, so it has no direction at p = 0
#include <descent/descent.hpp>

descent::layerwise<descent::madgrad> rule;
