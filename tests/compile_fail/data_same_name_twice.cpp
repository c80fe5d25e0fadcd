// expect: fields: two fields of a record have the same name
#include <descent/data/source.hpp>

descent::fields f{descent::field<"x", float>{}, descent::field<"x", int>{}};
