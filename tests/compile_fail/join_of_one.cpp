// expect: join: needs at least two schedules, and the step between each two
#include <descent/schedules/constant.hpp>
#include <descent/schedules/join.hpp>

using schedule = descent::join<descent::constant>;
schedule const one{};
