// Rooted PageRank by push, one block per root at a time; rounds and levels are those of kernels/push.py.
//
// The nodes that a root reaches are in a hash table in shared memory. Mass is an integer, in units of about 2^-32
// of a final value: sums of integers do not depend on the order in which threads add, so neither does the result,
// and nodes that an automorphism exchanges have exactly equal values.
//
// With WIDE defined, tables are in global memory, for roots whose nodes do not fit into shared memory.

#ifdef WIDE
typedef unsigned int Slot;
#else
typedef unsigned short Slot;
#endif
#ifndef THREADS
#define THREADS 768
#define BLOCKS 2        // per multiprocessor at a time
#define LANES 8         // threads that share a row of neighbours
#endif
typedef unsigned int u32;
typedef unsigned long long u64;

#define EMPTY (-1)
#define LONG_ROW 512    // longer rows are shared by all threads
#define LONG_ROWS 64
#define BINS 256
#define SOME 8          // the first SOME * k nodes bound the k-th value from below
#define UNITS 4290000000.0  // in a value of 1: below 2^32, with room for rounding
#define FIRST_LEVEL 0.7390851332151607
#define NEXT_LEVEL 0.2078795763507619

struct Graph {
    const long long* indptr;
    const int* indices;
    const int* degrees;       // of the neighbour of each entry
    const float* weights;     // or null
    const double* strengths;  // sum of a row's weights, or null
};

// Nodes wait in the queue; those before the front were pushed, by the amounts of the same index.
struct Table {
    int size, room, queue_room;
    int* keys;
    u32* held;
    u32* sent;     // WIDE only: mass pushed before the queue was last cleared
    u32* amounts;
    Slot* queue;
    Slot* list;    // slots in use
};

struct Shared {
    int count, front, tail, full, longs, row, found;
    u64 sum, prefix;
    u32 chosen, wanted;
    Slot long_rows[LONG_ROWS];
    u32 bins[BINS];
};

__shared__ Shared sh;
#ifdef __CUDACC__
extern __shared__ unsigned char memory[];
#define WARP 32
#endif

__device__ Table table_at(unsigned char* at, int size, int room, int queue_room) {
    Table t;
    t.size = size, t.room = room, t.queue_room = queue_room;
    t.keys = (int*)at, at += sizeof(int) * (size_t)size;
    t.held = (u32*)at, at += sizeof(u32) * (size_t)size;
    t.sent = (u32*)at;
#ifdef WIDE
    at += sizeof(u32) * (size_t)size;
#endif
    t.amounts = (u32*)at, at += sizeof(u32) * (size_t)queue_room;
    t.queue = (Slot*)at, at += sizeof(Slot) * (size_t)queue_room;
    t.list = (Slot*)at;
    return t;
}

__device__ void clear_slot(const Table& t, int slot) {
    t.keys[slot] = EMPTY, t.held[slot] = 0;
#ifdef WIDE
    t.sent[slot] = 0;
#endif
}

__device__ int find(const Table& t, int node) {
    u32 slot = __umulhi((u32)node * 2654435769u, (u32)t.size);
    while (true) {
        int key = t.keys[slot];
        if (key == node) return (int)slot;
        if (key == EMPTY) {
            if (sh.count >= t.room) { sh.full = 1; return -1; }
            int before = atomicCAS(&t.keys[slot], EMPTY, node);
            if (before == node) return (int)slot;
            if (before == EMPTY) {
                int place = atomicAdd(&sh.count, 1);
                if (place < t.room) t.list[place] = (Slot)slot; else sh.full = 1;
                return (int)slot;
            }
        }
        slot = slot + 1 == (u32)t.size ? 0 : slot + 1;
    }
}

// All threads of a warp call this together.
__device__ void add_up(u64* sum, u64 value) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    if (threadIdx.x % WARP == 0 && value) atomicAdd(sum, value);
}

__device__ void wait(const Table& t, int slot) {
    int place = atomicAdd(&sh.tail, 1);
    if (place < t.queue_room) t.queue[place] = (Slot)slot; else sh.full = 1;
}

// Add mass to a node, which is queued for the next round once it exceeds the level per neighbour.
__device__ void give(const Table& t, int node, u32 amount, double bound) {
    int slot = find(t, node);
    if (slot < 0) return;
    u32 before = atomicAdd(&t.held[slot], amount);
    if (before <= bound && (double)before + amount > bound) wait(t, slot);
}

__device__ u32 share_of(double mass) { return mass < 1.0 ? 1u : (u32)(mass + 0.5); }

// Spread the mass of one queued node, by the threads ``from``, ``from + step`` and so on.
__device__ void spread(const Graph& g, const Table& t, int place, int from, int step, double continuation,
                       double level) {
    int node = t.keys[t.queue[place]];
    long long start = g.indptr[node], stop = g.indptr[node + 1];
    if (g.weights) {
        double share = continuation * t.amounts[place] / g.strengths[node];
        for (long long edge = start + from; edge < stop; edge += step)
            give(t, g.indices[edge], share_of(share * g.weights[edge]), level * g.degrees[edge]);
        return;
    }
    u32 share = share_of(continuation * t.amounts[place] / (double)(stop - start));
    for (long long edge = start + from; edge < stop; edge += 4 * step) {
        int nodes[4], degrees[4];  // loaded at once to hide latency
        #pragma unroll
        for (int j = 0; j < 4; j++) {
            long long at = edge + j * step;
            nodes[j] = at < stop ? g.indices[at] : EMPTY;
            degrees[j] = at < stop ? g.degrees[at] : 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; j++) if (nodes[j] != EMPTY) give(t, nodes[j], share, level * degrees[j]);
    }
}

#ifdef WIDE
// Nodes may be pushed many times, so free the queue before it is full.
__device__ void clear_queue(const Table& t) {
    int front = sh.front, waiting = sh.tail - front, tid = threadIdx.x, threads = blockDim.x;
    if (sh.tail <= t.queue_room / 3 * 2) return;
    for (int i = tid; i < front; i += threads) atomicAdd(&t.sent[t.queue[i]], t.amounts[i]);
    __syncthreads();
    for (int i = tid; i < waiting; i += threads) t.queue[i] = t.queue[front + i];
    __syncthreads();
    if (tid == 0) sh.front = 0, sh.tail = waiting;
    __syncthreads();
}
#endif

// Push all queued nodes, by the mass they have now; sets sum (mass pushed).
__device__ void push_round(const Graph& g, const Table& t, double continuation, double level) {
#ifdef WIDE
    clear_queue(t);
#endif
    int tid = threadIdx.x, threads = blockDim.x, front = sh.front, tail = sh.tail;
    u64 taken = 0;
    __syncthreads();
    if (tid == 0) sh.sum = 0, sh.longs = 0, sh.front = tail;
    __syncthreads();
    for (int i = front + tid; i < tail; i += threads) {
        int slot = t.queue[i], node = t.keys[slot];
        u32 amount = t.held[slot];
        long long degree = g.indptr[node + 1] - g.indptr[node];
        t.held[slot] = 0;
        t.amounts[i] = amount;
        taken += amount;
        if (degree > LONG_ROW) {
            int place = atomicAdd(&sh.longs, 1);
            if (place < LONG_ROWS) sh.long_rows[place] = (Slot)i;
        }
    }
    add_up(&sh.sum, taken);
    __syncthreads();
    bool has_long = sh.longs > 0 && sh.longs <= LONG_ROWS;
    int lanes = LANES < threads ? LANES : threads;
    for (int i = front + tid / lanes; i < tail; i += threads / lanes) {
        int node = t.keys[t.queue[i]];
        if (has_long && g.indptr[node + 1] - g.indptr[node] > LONG_ROW) continue;
        spread(g, t, i, tid % lanes, lanes, continuation, level);
    }
    for (int j = 0; has_long && j < sh.longs; j++) spread(g, t, sh.long_rows[j], tid, threads, continuation, level);
    __syncthreads();
}

// Queue all nodes above the level per neighbour; sets sum (all residuals).
__device__ void wait_above(const Graph& g, const Table& t, double level) {
    u64 rest = 0;
    if (threadIdx.x == 0) sh.sum = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < sh.count; i += blockDim.x) {
        int slot = t.list[i];
        u32 residual = t.held[slot];
        rest += residual;
        if (residual == 0 || residual <= level) continue;
        int node = t.keys[slot];
        if (residual > level * (double)(g.indptr[node + 1] - g.indptr[node])) wait(t, slot);
    }
    add_up(&sh.sum, rest);
    __syncthreads();
}

// Push one root, like _push_root of kernels/push.py with a threshold.
__device__ void push(const Graph& g, const Table& t, int root, double continuation, double goal, double least,
                     double unit) {
    long long degree = g.indptr[root + 1] - g.indptr[root];
    if (threadIdx.x == 0) {
        sh.count = 0, sh.full = 0, sh.front = 0, sh.tail = 1;
        int slot = find(t, root);
        t.held[slot] = (u32)unit;
        t.queue[0] = (Slot)slot;
    }
    __syncthreads();
    if (degree == 0) return;
    double rest = 1.0, level = FIRST_LEVEL / degree;
    level = level > least ? level : least;
    while (true) {
        while (sh.front < sh.tail && rest > goal) {
            push_round(g, t, continuation, level * unit);
            rest -= (1.0 - continuation) * (double)sh.sum / unit;
            if (sh.full) return;
        }
        if (rest <= goal || level <= least) return;
        __syncthreads();
        level = level * NEXT_LEVEL > least ? level * NEXT_LEVEL : least;
        wait_above(g, t, level * unit);
        rest = (double)sh.sum / unit;
        if (sh.full) return;
    }
}

// Turn the residual of each node into all mass it received, which is in proportion to its value.
__device__ void add_pushed(const Table& t) {
    __syncthreads();
    for (int i = threadIdx.x; i < sh.front; i += blockDim.x) atomicAdd(&t.held[t.queue[i]], t.amounts[i]);
    __syncthreads();
#ifdef WIDE
    for (int i = threadIdx.x; i < sh.count; i += blockDim.x) t.held[t.list[i]] += t.sent[t.list[i]];
    __syncthreads();
#endif
}

__device__ u64 key_of(const Table& t, int slot) { return (u64)t.held[slot] << 32 | (u32)~t.keys[slot]; }

// Return a key that exactly k of the listed slots reach, by radix selection from the highest digit.
__device__ u64 select(const Table& t, const Slot* list, int count, int k) {
    int tid = threadIdx.x, threads = blockDim.x;
    if (tid == 0) sh.prefix = 0, sh.wanted = k, sh.found = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int bin = tid; bin < BINS; bin += threads) sh.bins[bin] = 0;
        __syncthreads();
        u64 prefix = sh.prefix;
        u32 wanted = sh.wanted;
        for (int i = tid; i < count; i += threads) {
            u64 key = key_of(t, list[i]);
            if (shift == 56 || key >> (shift + 8) == prefix >> (shift + 8)) atomicAdd(&sh.bins[key >> shift & 255], 1u);
        }
        __syncthreads();
        if (tid < WARP) {  // one warp finds the bin, from the last one down
            u32 own = 0, beyond;
            for (int j = 0; j < BINS / WARP; j++) own += sh.bins[BINS - 1 - (tid * (BINS / WARP) + j)];
            u32 upto = own;
            for (int offset = 1; offset < WARP; offset *= 2) {
                u32 other = __shfl_up_sync(0xFFFFFFFFu, upto, offset);
                if (tid >= offset) upto += other;
            }
            beyond = upto - own;
            for (int j = 0; j < BINS / WARP && beyond < wanted && upto >= wanted; j++) {
                int bin = BINS - 1 - (tid * (BINS / WARP) + j);
                u32 here = sh.bins[bin];
                if (beyond + here >= wanted) {
                    sh.prefix = prefix | (u64)bin << shift;
                    sh.wanted = wanted - beyond;
                    sh.found = beyond + here == wanted;
                    break;
                }
                beyond += here;
            }
        }
        __syncthreads();
        if (sh.found) break;
    }
    u64 least = sh.prefix;
    __syncthreads();
    return least;
}

// Return the slots that can have the k largest values, in the queue's memory if they fit there.
__device__ const Slot* shortlist(const Table& t, int k, int* count) {
    int all = sh.count, some = SOME * k < all ? SOME * k : all;
    u64 least = select(t, t.list, some, k) >> 32;  // at least k values reach it
    if (threadIdx.x == 0) sh.tail = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < all; i += blockDim.x) {
        Slot slot = t.list[i];
        if (t.held[slot] < least) continue;
        int place = atomicAdd(&sh.tail, 1);
        if (place < t.queue_room) t.queue[place] = slot;
    }
    __syncthreads();
    bool fits = sh.tail <= t.queue_room;
    *count = fits ? sh.tail : all;
    return fits ? t.queue : t.list;
}

// Write the k largest values of one root, like keep_top of kernels/push.py.
__device__ void keep_top(const Table& t, int k, float* out) {
    int tid = threadIdx.x, threads = blockDim.x, count = sh.count, chosen = k < count ? k : count;
    const Slot* list = t.list;
    u64 least = 0, *keys = (u64*)t.amounts;
    if (count > k) {
        list = shortlist(t, k, &count);
        least = select(t, list, count, k);
    }
    if (tid == 0) sh.chosen = 0, sh.sum = 0;
    __syncthreads();
    for (int i = tid; i < count; i += threads) {
        u64 key = key_of(t, list[i]);
        if (key < least) continue;
        keys[atomicAdd(&sh.chosen, 1u)] = key;
        atomicAdd(&sh.sum, key >> 32);
    }
    __syncthreads();
    double total = (double)sh.sum;
    for (int i = tid; i < k; i += threads) {
        if (i >= chosen) { out[i] = 0.0f; continue; }
        int rank = 0;
        for (int j = 0; j < chosen; j++) rank += keys[j] > keys[i];
        out[rank] = (float)((double)(keys[i] >> 32) / total);
    }
}

// Each block takes the next root when it is free; full[row] is set if the table was too small for its root.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) push_roots(
    const long long* indptr, const int* indices, const int* degrees, const float* weights, const double* strengths,
    int has_weights, const int* roots, const int* rows, int count, double continuation, double goal, double least,
    int k, unsigned char* tables, int size, int room, int queue_room, int* taken, float* out, int* full) {
    Graph g = {indptr, indices, degrees, has_weights ? weights : 0, has_weights ? strengths : 0};
#ifdef WIDE
    size_t bytes = 12 * (size_t)size + 8 * (size_t)queue_room + 4 * (size_t)room;
    Table t = table_at(tables + blockIdx.x * ((bytes + 15) / 16 * 16), size, room, queue_room);
#else
    Table t = table_at(memory, size, room, queue_room);
#endif
    for (int i = threadIdx.x; i < size; i += blockDim.x) clear_slot(t, i);
    while (true) {
        if (threadIdx.x == 0) sh.row = atomicAdd(taken, 1);
        __syncthreads();
        if (sh.row >= count) return;
        int row = rows[sh.row], root = roots[row];
        push(g, t, root, continuation, goal, least, (1.0 - continuation) * UNITS);
        int is_full = sh.full;
        if (threadIdx.x == 0) full[row] = is_full;
        if (!is_full) {
            add_pushed(t);
            keep_top(t, k, out + (long long)row * k);
        }
        __syncthreads();
        int used = is_full ? size : sh.count;
        for (int i = threadIdx.x; i < used; i += blockDim.x) clear_slot(t, is_full ? i : t.list[i]);
        __syncthreads();
    }
}
