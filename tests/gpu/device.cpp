// Exit code 0 if there is a CUDA device, otherwise 77: for programs that do not check this themselves.
#include <cuda_runtime_api.h>

int main() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? 0 : 77;
}
