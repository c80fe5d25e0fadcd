// Exit code 0 where there is a CUDA device, 77 otherwise: for programs that do not look themselves.
#include <cuda_runtime_api.h>

int main() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? 0 : 77;
}
