#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/listener.hpp"

#include <cstdio>

namespace {

unsigned chosen = 0;

/// Counts the tests that the filters choose.
struct counter : test::listener {
  explicit counter(doctest::ContextOptions const&) {}
  void report_query(doctest::QueryData const&) override { chosen = 1; }
  void test_run_end(doctest::TestRunStats const& all) override { chosen = all.numTestCasesPassingFilters; }
};

REGISTER_LISTENER("counter", 1, counter);

}  // namespace

/// The main of all tests. A filter that chooses no test is a failure.
int main(int argc, char** argv) {
  int const failed = doctest::Context(argc, argv).run();
  if (chosen == 0) std::puts("no test was chosen");
  return failed || chosen == 0;
}
