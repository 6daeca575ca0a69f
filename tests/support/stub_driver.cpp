// A CUDA driver without a GPU: memory is the host's, and a "cubin" is the text STUB with the path of
// a library in which g++ compiled the kernels' own CUDA text for the CPU (cuda_emulator.py).
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

typedef int (*Entry)(void** arguments, const int* grid, const int* block);
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NO_IMAGE = 200, NOT_FOUND = 500, FAILED = 719 };
static const size_t MEMORY = (size_t)1 << 28;
static int resets = 0, allocations = 0, modules = 0;

extern "C" {
int stub_resets() { return resets; }
int stub_allocations() { return allocations; }
int stub_modules() { return modules; }
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGet(int* device, int number) { *device = number; return number ? NO_DEVICE : 0; }
int cuDeviceGetName(char* name, int size, int) { strncpy(name, "stub", size); return 0; }
int cuDeviceGetAttribute(int* value, int number, int) { *value = number == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { *context = (void*)1; return 0; }
int cuDevicePrimaryCtxReset_v2(int) { ++resets; return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuModuleLoadData(void** module, const void* image) {
  if (strncmp((const char*)image, "STUB", 4)) return NO_IMAGE;
  *module = dlopen((const char*)image + 4, RTLD_NOW);
  modules += *module != nullptr;
  return *module ? 0 : NO_IMAGE;
}
int cuModuleUnload(void*) { --modules; return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = dlsym(module, name);
  return *function ? 0 : NOT_FOUND;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t size) {
  if (size > MEMORY) return OUT_OF_MEMORY;
  *pointer = (uint64_t)aligned_alloc(256, (size + 255) / 256 * 256);
  ++allocations;
  return 0;
}
int cuMemFree_v2(uint64_t pointer) { free((void*)pointer); --allocations; return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) { memcpy((void*)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) { memcpy(to, (void*)from, size); return 0; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, void*, void** arguments, void**) {
  const int grid[3] = {(int)gx, (int)gy, (int)gz}, block[3] = {(int)bx, (int)by, (int)bz};
  if (bx * by * bz > 1024 || gx * gy * gz == 0) return INVALID_VALUE;
  return ((Entry)function)(arguments, grid, block) ? FAILED : 0;
}
int cuEventCreate(void** event, unsigned) { *event = calloc(1, sizeof(double)); return 0; }
int cuEventRecord(void* event, void*) {
  std::chrono::duration<double, std::milli> now = std::chrono::steady_clock::now().time_since_epoch();
  *(double*)event = now.count();
  return 0;
}
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* first, void* last) {
  *milliseconds = (float)(*(double*)last - *(double*)first);
  return 0;
}
int cuEventDestroy_v2(void* event) { free(event); return 0; }
int cuGetErrorName(int error, const char** name) {
  *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
    : error == FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuGetErrorString(int, const char** text) { *text = "stub"; return 0; }
}
