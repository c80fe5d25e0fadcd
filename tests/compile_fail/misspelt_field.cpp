// expect: wieght_decay
#include <descent/rules/adamw.hpp>

descent::adamw const rule{.lr = 1e-3, .wieght_decay = 0.1};
