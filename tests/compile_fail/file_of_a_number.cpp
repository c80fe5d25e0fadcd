// expect: save_file and load_file: a part is an optimizer, parameters, values(params, backend), a loss_scaler, a loader, an object with save(f) and load(f), named(name, x), or each_rank(part)
#include <descent/io/checkpoint.hpp>

void f() { descent::save_file("run", 3); }
