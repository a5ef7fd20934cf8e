/* A libnvidia-ml.so.1 with two GPUs, of which the second counts no memory errors.
   INIT is what nvmlInit answers, ECC the first one's errors that could not be
   corrected; OLD leaves out a function, as an old driver does; MIG divides the first one
   into two devices, at the first and the third of seven places. */
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
#ifndef INIT
#define INIT 0
#endif
#ifndef ECC
#define ECC 0
#endif
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "fake"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned length) {
  if (device >= (void *)16) { strncpy(text, device == (void *)16 ? "MIG-1" : "MIG-2", length); return 0; }
  strncpy(text, device == (void *)1 ? "GPU-00000000-0000-0000-0000-000000000001" : "GPU-00000000-0000-0000-0000-000000000002", length);
  return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned length) {
  strncpy(text, device >= (void *)16 ? "NVIDIA H100 80GB HBM3 MIG 1g.10gb" : "NVIDIA H100 80GB HBM3", length);
  return 0;
}
#ifdef MIG
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
  *current = *pending = device == (void *)1;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
  if (index != 0 && index != 2) return 6; /* not found */
  *part = (void *)(long)(16 + index);
  return 0;
}
#endif
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *errors) {
  if (device == (void *)2) return 3; /* not supported */
  *errors = type == 1 && counter == 0 ? ECC : 99; /* uncorrected, since the driver was loaded */
  return 0;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo(void *device, memory *info) {
  if (device == (void *)2) return 3; /* not supported */
  info->total = device >= (void *)16 ? 9856ull << 20 : 85520809984ull;
  return 0;
}
#endif
