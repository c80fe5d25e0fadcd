// expect: map: the function must be f(out, random), or f(in, out, random) if fields are given, and be callable if const
#include <descent/data/sources.hpp>

void f(descent::in_memory<descent::field<"x", float>> const& source) {
  descent::map m{source, [](int) {}};
}
