// expect: 'wieght_decay' is not a member of 'descent::adamw'
#include <descent/rules/adamw.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

auto const policy = descent::vary<&descent::adamw::wieght_decay>(descent::linear{});
