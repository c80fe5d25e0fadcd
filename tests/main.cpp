#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

namespace {

unsigned chosen = 0;

/// How many tests the filters choose.
struct counter : doctest::IReporter {
  explicit counter(doctest::ContextOptions const&) {}
  void report_query(doctest::QueryData const&) override { chosen = 1; }
  void test_run_start() override {}
  void test_run_end(doctest::TestRunStats const& all) override { chosen = all.numTestCasesPassingFilters; }
  void test_case_start(doctest::TestCaseData const&) override {}
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override {}
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const&) override {}
  void log_message(doctest::MessageData const&) override {}
  void test_case_skipped(doctest::TestCaseData const&) override {}
};

REGISTER_LISTENER("counter", 1, counter);

}  // namespace

/// The main of tests. A filter that chooses no test is a failure.
int main(int argc, char** argv) {
  int const failed = doctest::Context(argc, argv).run();
  if (chosen == 0) std::puts("no test was chosen");
  return failed || chosen == 0;
}
