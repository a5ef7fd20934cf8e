/* A libcuda.so.1 with one GPU, whose memory is this process's. INIT and CONTEXT are what cuInit and cuCtxCreate answer.
   FLIP has one bit of its memory be 1 always, ALIAS two addresses be one place, HANG a kernel never end, FULL no memory
   be had, BUSY little of it be free, NOJIT the driver have no compiler, SICK kernels fail, OLD a function be missing, and
   OTHER the GPU be another one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef INIT
#define INIT 0
#endif
#ifndef CONTEXT
#define CONTEXT 0
#endif
typedef unsigned long long word;
static const size_t all = 160u << 20, ours = 10u << 20;
static size_t used;
static char *first_block;
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGet(int *device, int ordinal) { *device = 0; return 0; }
int cuDeviceGetUuid(unsigned char *id, int device) {
  memset(id, 0x11, 16);
#ifdef OTHER
  id[0] = 0x22;
#endif
  return 0;
}
#ifndef OLD
int cuCtxCreate_v2(void **context, unsigned flags, int device) { *context = (void *)1; return CONTEXT; }
#endif
int cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = all; *free = all - ours - used;
#ifdef BUSY
  *free = 12u << 20;
#endif
  return 0;
}
int cuMemAlloc_v2(word *at, size_t bytes) {
#ifdef FULL
  if (bytes >= 1u << 20) return 2;
#endif
  if (used + bytes > all - ours) return 2;
  used += bytes;
#ifdef ALIAS
  if (first_block != NULL && bytes >= 1u << 20) { *at = (word)(size_t)first_block; return 0; }
#endif
  char *p = malloc(bytes);
  memset(p, 0xEE, bytes); /* what somebody left */
  if (bytes >= 1u << 20 && first_block == NULL) first_block = p;
  *at = (word)(size_t)p;
  return 0;
}
static void flip(void) {
#ifdef FLIP
  if (first_block != NULL) ((word *)first_block)[123456] |= 32;
#endif
}
int cuMemsetD8_v2(word at, unsigned char value, size_t n) { memset((void *)(size_t)at, value, n); flip(); return 0; }
int cuMemcpyDtoH_v2(void *to, word at, size_t n) { memcpy(to, (void *)(size_t)at, n); return 0; }
int cuMemcpyHtoD_v2(word at, const void *from, size_t n) { memcpy((void *)(size_t)at, from, n); return 0; }
int cuModuleLoadData(void **module, const void *image) {
#ifdef NOJIT
  return 221;
#endif
  *module = (void *)image;
  return strncmp(image, "//", 2) && strncmp(image, ".version", 8) ? 218 : 0;
}
static int filling, checking;
int cuModuleGetFunction(void **function, void *module, const char *name) {
  char entry[64] = ".entry ";
  if (strstr(module, strcat(strcat(entry, name), "(")) == NULL) return 500;
  *function = strcmp(name, "forewarm_fill") == 0 ? &filling : &checking;
  return 0;
}
int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  word *p = *(word **)arguments[0], words = *(word *)arguments[1], first = *(word *)arguments[2],
       multiplier = *(word *)arguments[3], seed = *(word *)arguments[4];
#ifdef SICK
  return 719;
#endif
  if (kernel == &filling) {
    for (word i = 0; i < words; i++) p[i] = (first + i) * multiplier + seed;
    flip();
    return 0;
  }
  word *found = *(word **)arguments[5];
  for (word i = 0; i < words; i++)
    if (p[i] != (first + i) * multiplier + seed) {
      found[0]++;
      if (first + i < found[1]) found[1] = first + i;
    }
  return 0;
}
int cuCtxSynchronize(void) {
#ifdef HANG
  for (;;) pause();
#endif
  return 0;
}
