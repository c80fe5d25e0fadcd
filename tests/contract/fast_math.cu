// The same on a device.
#include "fast_math.cpp"
