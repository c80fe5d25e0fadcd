// expect: join: needs at least two schedules, and the step between each two
#include <descent/schedules/combine.hpp>
#include <descent/schedules/decay.hpp>

using schedule = descent::join<descent::constant>;
schedule const one{};
