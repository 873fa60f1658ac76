// One translation unit: torch's headers are most of the work of a compiler here, and are read once.
#include "device.cpp"
#include "fallback.cpp"
#include "kernels.cpp"
