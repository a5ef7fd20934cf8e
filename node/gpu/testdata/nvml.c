/* A libnvidia-ml.so.1 with two GPUs, of which the second has few figures. INIT is what
   nvmlInit answers; LOST takes the second GPU away; OLD leaves out functions, as an old
   driver does, and ANCIENT one without which there is no look. MIG divides the first one into
   two devices, at the first and the third of seven places, and EMPTY into none. RESET is what resetting
   clocks answers, and after it the clock of graphics is GRAPHICS. The first one's limit of power is LIMIT, which
   may be set unless SETS is not 0, and its mode of ECC is set to no effect, as is that of MIG, which is MODE. GPM has
   the first one keep counters, which grow with each sample, and LINKS has it tell of its links. */
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct {
  unsigned id, scope;
  long long timestamp, latency;
  int type, code;
  union { unsigned ui; unsigned long long ull; double d; } value;
} field;
#ifndef INIT
#define INIT 0
#endif
#define SECOND if (device == (void *)2) return 3 /* not supported */
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { strncpy(text, "570.86.10", length); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
#ifdef LOST
  if (index == 1) return 15;
#endif
  *device = (void *)(long)(index + 1);
  return 0;
}
#ifndef ANCIENT
int nvmlDeviceGetUUID(void *device, char *text, unsigned length) {
  strncpy(text, device == (void *)1 ? "GPU-1" : device == (void *)2 ? "GPU-2" : device == (void *)16 ? "MIG-1" : "MIG-2", length);
  return 0;
}
#endif
int nvmlDeviceGetName(void *device, char *text, unsigned length) {
  if (device >= (void *)16) { strncpy(text, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", length); return 0; }
  strncpy(text, "NVIDIA H100 80GB HBM3", length); return 0;
}
#if defined(MIG) || defined(EMPTY)
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { SECOND; *current = *pending = 1; return 0; }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
#ifdef MIG
  if (index == 0 || index == 2) { *part = (void *)(long)(16 + index); return 0; }
#endif
  return 6; /* not found */
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id) { *id = 9; return 0; }
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id) { *id = 0; return 0; }
#endif
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { *minor = 3 + (unsigned)(long)device; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, memory *info) {
  SECOND;
  info->total = 85520809984ull;
  info->used = 1ull << 30;
  if (device >= (void *)16) { info->total = 9856ull << 20; info->used = 13ull << 20; }
  return 0;
}
#ifndef OLD
int nvmlDeviceGetUtilizationRates(void *device, utilization *u) { SECOND; if (device >= (void *)16) return 3; u->gpu = 37; u->memory = 12; return 0; }
int nvmlDeviceGetFieldValues(void *device, int count, field *values) {
  SECOND;
  values[0].code = values[0].id == 230 ? 0 : 3;
  values[0].value.ui = 1;
  return 0;
}
#endif
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value) { SECOND; *value = 45; return 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *value) { SECOND; *value = 123456; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) { SECOND; *bits = 1 | 64; return 0; }
int nvmlDeviceGetRemappedRows(void *device, unsigned *fixed, unsigned *broken, unsigned *pending, unsigned *failed) {
  SECOND;
  *fixed = 2; *broken = 1; *pending = 1; *failed = 0;
  return 0;
}
#ifndef RESET
#define RESET 0
#endif
#ifndef GRAPHICS
#define GRAPHICS 1410
#endif
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  if (strcmp(uuid, "GPU-1") != 0) return 6;
  *device = (void *)1;
  return 0;
}
int nvmlDeviceResetGpuLockedClocks(void *device) { return RESET; }
int nvmlDeviceResetMemoryLockedClocks(void *device) { return 3; }
int nvmlDeviceResetApplicationsClocks(void *device) { return RESET; }
int nvmlDeviceGetApplicationsClock(void *device, int type, unsigned *clock) { *clock = type == 0 ? GRAPHICS : 1215; return 0; }
int nvmlDeviceGetDefaultApplicationsClock(void *device, int type, unsigned *clock) { *clock = type == 0 ? 1410 : 1215; return 0; }
#ifndef LIMIT
#define LIMIT 700000
#endif
#ifndef SETS
#define SETS 0
#endif
static unsigned limit = LIMIT;
#ifdef COMPUTE
static int compute = COMPUTE;
#else
static int compute = 0;
#endif
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *value) { SECOND; *value = limit; return 0; }
int nvmlDeviceSetPowerManagementLimit(void *device, unsigned value) { if (SETS == 0) limit = value; return SETS; }
int nvmlDeviceGetComputeMode(void *device, int *mode) { SECOND; *mode = compute; return 0; }
int nvmlDeviceSetComputeMode(void *device, int mode) { compute = mode; return 0; }
#ifdef ECC
int nvmlDeviceGetEccMode(void *device, int *current, int *pending) { SECOND; *current = 1; *pending = ECC; return 0; }
int nvmlDeviceSetEccMode(void *device, int mode) { return 0; }
#endif
#ifdef MODE
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { SECOND; *current = *pending = MODE; return 0; }
int nvmlDeviceSetMigMode(void *device, unsigned mode, int *status) { *status = 0; return SETS; }
#endif
#ifdef LINKS
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *v) { SECOND; *v = 1; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *v) { SECOND; *v = 5; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *v) { SECOND; *v = 8; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *v) { SECOND; *v = 16; return 0; }
int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *v) { SECOND; *v = counter == 0 ? 5 : 7; return 0; }
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
  SECOND;
  if (link >= 4) return 2; /* invalid argument */
  *active = link != 3;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *n) { SECOND; *n = 10 * type + counter; return 0; }
#endif
#ifdef GPM
#include <stdlib.h>
typedef struct { unsigned version, supported; } support;
typedef struct { unsigned id; int code; double value; char *words[3]; } metric;
typedef struct { unsigned version, count; long *before, *after; metric metrics[210]; } comparison;
static long taken;
int nvmlGpmQueryDeviceSupport(void *device, support *s) { s->supported = device == (void *)1; return 0; }
int nvmlGpmSampleAlloc(long **sample) { *sample = malloc(sizeof(long)); return 0; }
int nvmlGpmSampleFree(long *sample) { free(sample); return 0; }
int nvmlGpmSampleGet(void *device, long *sample) { SECOND; *sample = ++taken; return GPM; }
int nvmlGpmMetricsGet(comparison *c) {
  for (unsigned i = 0; i < c->count; i++) {
    metric *m = &c->metrics[i];
    m->code = m->id == 60 ? 3 : 0; /* what NVLinks receive is not supported */
    m->value = m->id == 2 ? 42.5 : (double)m->id * (*c->after - *c->before);
  }
  return 0;
}
#endif
