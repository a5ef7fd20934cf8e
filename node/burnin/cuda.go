//go:build linux && cgo

package burnin

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
typedef int (*call_u)(unsigned);
typedef int (*call_p)(void *);
typedef int (*call_pi)(void *, int);
typedef int (*call_pui)(void *, unsigned, int);
typedef int (*call_pp)(void *, void *);
typedef int (*call_pz)(void *, size_t);
typedef int (*call_ppp)(void *, void *, const char *);
typedef int (*call_dbz)(unsigned long long, unsigned char, size_t);
typedef int (*call_pdz)(void *, unsigned long long, size_t);
typedef int (*call_dpz)(unsigned long long, const void *, size_t);
typedef int (*call_v)(void);
typedef int (*call_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
	void **, void **);
static int do_u(void *f, unsigned a) { return ((call_u)f)(a); }
static int do_p(void *f, void *a) { return ((call_p)f)(a); }
static int do_pi(void *f, void *a, int b) { return ((call_pi)f)(a, b); }
static int do_pui(void *f, void *a, unsigned b, int c) { return ((call_pui)f)(a, b, c); }
static int do_pp(void *f, void *a, void *b) { return ((call_pp)f)(a, b); }
static int do_pz(void *f, void *a, size_t b) { return ((call_pz)f)(a, b); }
static int do_function(void *f, void *out, void *module, const char *name) { return ((call_ppp)f)(out, module, name); }
static int do_set(void *f, unsigned long long at, unsigned char v, size_t n) { return ((call_dbz)f)(at, v, n); }
static int do_read(void *f, void *to, unsigned long long at, size_t n) { return ((call_pdz)f)(to, at, n); }
static int do_write(void *f, unsigned long long at, const void *from, size_t n) { return ((call_dpz)f)(at, from, n); }
static int do_v(void *f) { return ((call_v)f)(); }
static int do_launch(void *f, void *kernel, unsigned blocks, unsigned threads, unsigned long long *six) {
	void *arguments[6] = {six, six + 1, six + 2, six + 3, six + 4, six + 5};
	return ((call_launch)f)(kernel, blocks, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL);
}
*/
import "C"

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"
)

// HasCUDA says whether this program can ask the CUDA driver.
const HasCUDA = true

//go:embed kernels.ptx
var kernelText []byte

// Codes of the driver's (CUresult in cuda.h).
const (
	outOfMemory = 2
	unavailable = 46 // others have it alone, or nobody may compute on it
)

// How the kernels are started.
const (
	gridBlocks   = 4096
	gridThreads  = 256
	resultsBytes = 16
)

// cuda is one GPU, of the thread that opened it.
type cuda struct {
	functions   map[string]unsafe.Pointer
	id          string
	fillKernel  unsafe.Pointer
	checkKernel unsafe.Pointer
	results     uint64 // where check leaves what it found
	without     string // why there are no kernels
}

// called are the functions of the driver's that it calls, and cannot do without.
var called = []string{"cuInit", "cuDeviceGet", "cuCtxCreate_v2", "cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemsetD8_v2",
	"cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuCtxSynchronize"}

// openDevice opens the first GPU that CUDA shows, which is the one that the environment names.
func openDevice(path string) (device, error) {
	runtime.LockOSThread() // a context is a thread's; this process has no other work
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := C.dlopen(name, C.RTLD_NOW|C.RTLD_GLOBAL)
	if library == nil {
		return nil, fmt.Errorf("%w: %s is not there", errNoCUDA, path)
	}
	d := &cuda{functions: map[string]unsafe.Pointer{}}
	for _, f := range called {
		if !d.find(library, f) {
			return nil, fmt.Errorf("%w: the driver is too old, it lacks %s", errNoCUDA, f)
		}
	}
	if code := C.do_u(d.functions["cuInit"], 0); code != 0 {
		return nil, fmt.Errorf("%w: %w", errNoCUDA, failure("cuInit", code))
	}
	var handle C.int
	if code := C.do_pi(d.functions["cuDeviceGet"], unsafe.Pointer(&handle), 0); code != 0 {
		return nil, fmt.Errorf("%w: %w", errNoCUDA, failure("cuDeviceGet", code))
	}
	if d.find(library, "cuDeviceGetUuid") {
		var id [16]byte
		if C.do_pi(d.functions["cuDeviceGetUuid"], unsafe.Pointer(&id), handle) == 0 {
			d.id = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		}
	}
	var context unsafe.Pointer
	switch code := C.do_pui(d.functions["cuCtxCreate_v2"], unsafe.Pointer(&context), 0, handle); code {
	case 0:
		return d, d.load()
	case outOfMemory, unavailable:
		return nil, fmt.Errorf("%w: %w", errNoCUDA, failure("cuCtxCreate", code))
	default:
		return nil, failure("cuCtxCreate", code)
	}
}

func (d *cuda) find(library unsafe.Pointer, name string) bool {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	d.functions[name] = C.dlsym(library, text)
	return d.functions[name] != nil
}

// load loads the kernels, and starts them once, before all memory is taken. That the driver cannot make them for its
// GPU is no fault of the GPU.
func (d *cuda) load() error {
	var err error
	if d.results, err = d.allocate(resultsBytes); err != nil {
		return err
	}
	var module unsafe.Pointer
	text := C.CBytes(append(kernelText, 0))
	defer C.free(text)
	if code := C.do_pp(d.functions["cuModuleLoadData"], unsafe.Pointer(&module), text); code != 0 {
		d.without = failure("cuModuleLoadData", code).Error()
		return nil
	}
	for name, kernel := range map[string]*unsafe.Pointer{"forewarm_fill": &d.fillKernel,
		"forewarm_check": &d.checkKernel} {
		c, found := C.CString(name), unsafe.Pointer(nil)
		code := C.do_function(d.functions["cuModuleGetFunction"], unsafe.Pointer(&found), module, c)
		C.free(unsafe.Pointer(c))
		if code != 0 {
			d.without = failure("cuModuleGetFunction", code).Error()
			return nil
		}
		*kernel = found
	}
	return d.launch(d.fillKernel, block{at: d.results, words: resultsBytes / 8}, pattern{})
}

func (d *cuda) uuid() string { return d.id }

func (d *cuda) kernels() string { return d.without }

func (d *cuda) memory() (free, total uint64, err error) {
	var f, t C.size_t
	code := C.do_pp(d.functions["cuMemGetInfo_v2"], unsafe.Pointer(&f), unsafe.Pointer(&t))
	if code != 0 {
		return 0, 0, failure("cuMemGetInfo", code)
	}
	return uint64(f), uint64(t), nil
}

func (d *cuda) allocate(bytes uint64) (uint64, error) {
	var at C.ulonglong
	switch code := C.do_pz(d.functions["cuMemAlloc_v2"], unsafe.Pointer(&at), C.size_t(bytes)); code {
	case 0:
		return uint64(at), nil
	case outOfMemory:
		return 0, errNoMemory
	default:
		return 0, failure("cuMemAlloc", code)
	}
}

func (d *cuda) fill(b block, p pattern) error {
	if d.without == "" {
		return d.launch(d.fillKernel, b, p)
	}
	if p.multiplier != 0 { // the driver alone writes the same everywhere: samples are then of the host's making
		return d.writeSamples(b, p)
	}
	code := C.do_set(d.functions["cuMemsetD8_v2"], C.ulonglong(b.at), C.uchar(p.seed), C.size_t(8*b.words))
	if code != 0 {
		return failure("cuMemsetD8", code)
	}
	return d.wait()
}

// writeSamples writes both ends of a block.
func (d *cuda) writeSamples(b block, p pattern) error {
	const words = sampled / 8
	for _, from := range []uint64{0, b.words - words} {
		var text [sampled]byte
		for i := range uint64(words) {
			binary.NativeEndian.PutUint64(text[8*i:], p.at(b.first+from+i))
		}
		if err := d.put(b.at+8*from, text[:]); err != nil {
			return err
		}
	}
	return nil
}

func (d *cuda) put(at uint64, text []byte) error {
	code := C.do_write(d.functions["cuMemcpyHtoD_v2"], C.ulonglong(at), unsafe.Pointer(&text[0]),
		C.size_t(len(text)))
	if code != 0 {
		return failure("cuMemcpyHtoD", code)
	}
	return nil
}

func (d *cuda) check(b block, p pattern) (differ, least uint64, err error) {
	if d.without != "" {
		return 0, 0, nil
	}
	var found [resultsBytes]byte
	binary.NativeEndian.PutUint64(found[8:], ^uint64(0))
	if err := d.put(d.results, found[:]); err != nil {
		return 0, 0, err
	}
	if err := d.launch(d.checkKernel, b, p); err != nil {
		return 0, 0, err
	}
	if err := d.read(d.results, found[:]); err != nil {
		return 0, 0, err
	}
	return binary.NativeEndian.Uint64(found[:]), binary.NativeEndian.Uint64(found[8:]), nil
}

// launch starts a kernel on a block, and waits for it.
func (d *cuda) launch(kernel unsafe.Pointer, b block, p pattern) error {
	six := [6]C.ulonglong{C.ulonglong(b.at), C.ulonglong(b.words), C.ulonglong(b.first), C.ulonglong(p.multiplier),
		C.ulonglong(p.seed), C.ulonglong(d.results)}
	code := C.do_launch(d.functions["cuLaunchKernel"], kernel, gridBlocks, gridThreads, &six[0])
	if code != 0 {
		return failure("cuLaunchKernel", code)
	}
	return d.wait()
}

func (d *cuda) wait() error {
	if code := C.do_v(d.functions["cuCtxSynchronize"]); code != 0 {
		return failure("cuCtxSynchronize", code)
	}
	return nil
}

func (d *cuda) read(at uint64, into []byte) error {
	code := C.do_read(d.functions["cuMemcpyDtoH_v2"], unsafe.Pointer(&into[0]), C.ulonglong(at), C.size_t(len(into)))
	if code != 0 {
		return failure("cuMemcpyDtoH", code)
	}
	return nil
}

// meanings are what the codes say that are likely.
var meanings = map[C.int]string{outOfMemory: "out of memory", 3: "not initialized", unavailable: "it is unavailable",
	100: "no GPU is shown", 101: "no such device", 214: "an error of its memory that cannot be corrected",
	218: "its PTX cannot be used", 221: "the driver's JIT compiler is not there", 222: "its PTX is of a later version",
	700: "an illegal address", 702: "a kernel took too long", 718: "an invalid program counter", 719: "a kernel failed",
	802: "the system is not ready", 803: "the driver's parts are of different versions", 999: "an unknown error"}

func failure(call string, code C.int) error {
	if text := meanings[code]; text != "" {
		return fmt.Errorf("%s: error %d, %s", call, int(code), text)
	}
	return fmt.Errorf("%s: error %d", call, int(code))
}
