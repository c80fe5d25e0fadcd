// expect: fields: the record has no field of this name
#include <descent/data/source.hpp>

auto f(descent::record<descent::fields<descent::field<"x", float>>> const& r) { return r.get<"y">(); }
