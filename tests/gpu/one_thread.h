// Enough of CUDA to run a kernel as blocks of one thread, one after the other.
#include <cstddef>
#define __global__
#define __device__
#define WARP 1
#define __launch_bounds__(threads, blocks)
#define __shared__ static
struct Three { int x; };
static Three threadIdx, blockIdx, blockDim = {1}, gridDim = {1};
static void __syncthreads() {}
template <class T> static T __shfl_up_sync(unsigned, T, int) { return 0; }
template <class T> static T __shfl_down_sync(unsigned, T, int) { return 0; }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
template <class T> static T atomicAdd(T* at, T value) { T before = *at; *at += value; return before; }
static int atomicCAS(int* at, int expected, int value) { int before = *at; if (before == expected) *at = value; return before; }
