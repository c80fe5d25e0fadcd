// expect: class threads;      // #include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f() { descent::comm::threads{2}.rank(0); }
