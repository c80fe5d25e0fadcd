// expect: memory_from on the host: a resource has void* allocate(bytes, alignment) and deallocate(p, bytes, alignment)
#include <descent/descent.hpp>

struct resource {
  void* allocate(int);
  void deallocate(void*);
};
void f(descent::parameters<float> const& params, resource* r) {
  descent::optimizer opt{params, descent::sgd{}, descent::memory_from{r}};
}
