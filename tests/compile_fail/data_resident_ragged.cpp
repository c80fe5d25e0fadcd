// expect: resident: a record of a ragged field has no fixed size
#include <descent/data/resident.hpp>

struct lines {
  descent::fields<descent::ragged<"t", int>> fields() const { return descent::fields{descent::ragged<"t", int>(4)}; }
  std::int64_t size() const { return 3; }
  void read(std::int64_t, auto const&, descent::record_random&) const {}
};
void f() { descent::resident data{lines{}, descent::batches{1}, descent::sequential{}}; }
