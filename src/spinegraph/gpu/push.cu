// Rooted PageRank by push, one block per root at a time; the rounds and levels of kernels/push.py.
//
// A root's nodes live in a hash table in shared memory. Mass is counted in whole units of about 2^-32 of a
// final value: sums of whole numbers do not depend on the order in which threads add, so neither does the
// result, and nodes that an automorphism exchanges hold exactly equal values.
//
// Compiled with WIDE the tables lie in global memory, for roots that reach more than shared memory holds.

#ifdef WIDE
typedef unsigned int Slot;
#else
typedef unsigned short Slot;
#endif
#ifndef THREADS
#define THREADS 512
#define BLOCKS 2  // on a multiprocessor at a time
#endif
typedef unsigned int u32;
typedef unsigned long long u64;

#define EMPTY (-1)
#define LANES 8         // threads that share a row of neighbours
#define LONG_ROW 512    // a longer one is shared by all
#define MOST_LONG 64
#define BINS 256
#define SOME 8          // times k nodes, found first, that bound the k-th value from below
#define ROOM 4          // a tied group that makes a row longer than this many times k is dropped
#define FIRST_LEVEL 0.7390851332151607
#define NEXT_LEVEL 0.5671432904097838
#define NEXT_BOUNDED_LEVEL 0.2078795763507619

struct Graph {
    const long long* indptr;
    const int* indices;
    const float* weights;     // or null
    const double* strengths;  // sum of a row's weights, or null
};

struct Table {
    int size, room, wait_room;
    int* keys;
    u32* got;   // all mass ever received
    u32* sent;  // the part of it that was passed on
    Slot* list; // slots in use
    Slot* front;
    Slot* next;
    u32* amount;
};

struct Shared {
    int count, front, next, full, longs, row, found;
    u64 sum, edges, prefix;
    u32 last, above, group, chosen, wanted;
    Slot long_rows[MOST_LONG];
    u32 bins[2][BINS];
};

__shared__ Shared sh;
#ifdef __CUDACC__
extern __shared__ unsigned char memory[];
#endif

__device__ Table table_at(unsigned char* at, int size, int room, int wait_room) {
    Table t;
    t.size = size, t.room = room, t.wait_room = wait_room;
    t.keys = (int*)at, at += sizeof(int) * (size_t)size;
    t.got = (u32*)at, at += sizeof(u32) * (size_t)size;
    t.sent = (u32*)at, at += sizeof(u32) * (size_t)size;
    t.amount = (u32*)at, at += sizeof(u32) * (size_t)wait_room;
    t.front = (Slot*)at, at += sizeof(Slot) * (size_t)wait_room;
    t.next = (Slot*)at, at += sizeof(Slot) * (size_t)wait_room;
    t.list = (Slot*)at;
    return t;
}

__device__ int find(const Table& t, int node) {
    u32 slot = __umulhi((u32)node * 2654435769u, (u32)t.size);
    while (true) {
        int held = t.keys[slot];
        if (held == node) return (int)slot;
        if (held == EMPTY) {
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
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    if (threadIdx.x % 32 == 0 && value) atomicAdd(sum, value);
}

__device__ void wait(const Table& t, int slot) {
    int place = atomicAdd(&sh.next, 1);
    if (place < t.wait_room) t.next[place] = (Slot)slot; else sh.full = 1;
}

// Give mass to a node; it waits for the next round once it rises above the level per neighbour.
__device__ void give(const Graph& g, const Table& t, int node, u32 amount, double level) {
    int slot = find(t, node);
    if (slot < 0) return;
    u32 before = atomicAdd(&t.got[slot], amount) - t.sent[slot];
    double after = (double)before + amount;
    if (after <= level) return;
    double bound = level * (double)(g.indptr[node + 1] - g.indptr[node]);
    if (before <= bound && after > bound) wait(t, slot);
}

__device__ u32 share_of(double mass) { return mass < 1.0 ? 1u : (u32)(mass + 0.5); }

__device__ void spread(const Graph& g, const Table& t, int i, int from, int step, double continuation, double level) {
    int node = t.keys[t.front[i]];
    long long start = g.indptr[node], stop = g.indptr[node + 1];
    if (g.weights) {
        double share = continuation * t.amount[i] / g.strengths[node];
        for (long long edge = start + from; edge < stop; edge += step)
            give(g, t, g.indices[edge], share_of(share * g.weights[edge]), level);
        return;
    }
    u32 share = share_of(continuation * t.amount[i] / (double)(stop - start));
    for (long long edge = start + from; edge < stop; edge += 4 * step) {
        int nodes[4];  // four loads on their way at once
        #pragma unroll
        for (int j = 0; j < 4; j++) nodes[j] = edge + j * step < stop ? g.indices[edge + j * step] : EMPTY;
        #pragma unroll
        for (int j = 0; j < 4; j++) if (nodes[j] != EMPTY) give(g, t, nodes[j], share, level);
    }
}

// Push all that wait, by what they hold now. Leaves the next round's in front; sets sum (taken) and edges.
__device__ void push_round(const Graph& g, Table& t, double continuation, double level) {
    int tid = threadIdx.x, threads = blockDim.x, count = sh.front;
    u64 taken = 0, edges = 0;
    if (tid == 0) sh.sum = 0, sh.next = 0, sh.longs = 0;
    __syncthreads();
    for (int i = tid; i < count; i += threads) {
        int slot = t.front[i], node = t.keys[slot];
        u32 amount = t.got[slot] - t.sent[slot];
        long long degree = g.indptr[node + 1] - g.indptr[node];
        t.sent[slot] = t.got[slot];
        t.amount[i] = amount;
        taken += amount, edges += degree;
        if (degree > LONG_ROW) {
            int place = atomicAdd(&sh.longs, 1);
            if (place < MOST_LONG) sh.long_rows[place] = (Slot)i;
        }
    }
    add_up(&sh.sum, taken);
    add_up(&sh.edges, edges);
    __syncthreads();
    bool has_long = sh.longs > 0 && sh.longs <= MOST_LONG;
    int lanes = LANES < threads ? LANES : threads, lane = tid % lanes;
    for (int i = tid / lanes; i < count; i += threads / lanes) {
        int node = t.keys[t.front[i]];
        if (has_long && g.indptr[node + 1] - g.indptr[node] > LONG_ROW) continue;
        spread(g, t, i, lane, lanes, continuation, level);
    }
    for (int j = 0; has_long && j < sh.longs; j++) spread(g, t, sh.long_rows[j], tid, threads, continuation, level);
    __syncthreads();
    Slot* other = t.front;
    t.front = t.next, t.next = other;
    if (tid == 0) sh.front = sh.next;
    __syncthreads();
}

// List what is above the level per neighbour in front; sets sum (all residuals).
__device__ void list_above(const Graph& g, Table& t, double level) {
    int tid = threadIdx.x;
    u64 rest = 0;
    if (tid == 0) sh.sum = 0, sh.next = 0;
    __syncthreads();
    for (int i = tid; i < sh.count; i += blockDim.x) {
        int slot = t.list[i];
        u32 residual = t.got[slot] - t.sent[slot];
        rest += residual;
        if (residual == 0 || residual <= level) continue;
        int node = t.keys[slot];
        if (residual > level * (double)(g.indptr[node + 1] - g.indptr[node])) wait(t, slot);
    }
    add_up(&sh.sum, rest);
    __syncthreads();
    Slot* other = t.front;
    t.front = t.next, t.next = other;
    if (tid == 0) sh.front = sh.next;
    __syncthreads();
}

// Push one root, as _push and the sweeps of kernels/push.py do; returns the mass left over.
__device__ double push(const Graph& g, Table& t, int root, double continuation, double goal, double least,
                       double budget, double unit) {
    long long degree = g.indptr[root + 1] - g.indptr[root];
    if (threadIdx.x == 0) {
        sh.count = 0, sh.full = 0, sh.edges = 0, sh.front = 1;
        int slot = find(t, root);
        t.got[slot] = (u32)unit;
        t.front[0] = (Slot)slot;
    }
    __syncthreads();
    if (degree == 0) return 0.0;
    double rest = 1.0, level = FIRST_LEVEL / degree;
    level = level > least ? level : least;
    bool spent = false;
    while (true) {
        while (sh.front > 0 && rest > goal && !spent) {
            push_round(g, t, continuation, level * unit);
            rest -= (1.0 - continuation) * (double)sh.sum / unit;
            spent = budget >= 0 && sh.edges > budget;
            if (sh.full) return rest;
            __syncthreads();
        }
        if (rest <= goal || level <= least || spent) break;
        level *= least > 0 ? NEXT_BOUNDED_LEVEL : NEXT_LEVEL;
        level = level > least ? level : least;
        list_above(g, t, level * unit);
        rest = (double)sh.sum / unit;
        if (sh.full) return rest;
        __syncthreads();
    }
    for (; spent && rest > goal; rest *= continuation) {  // sweeps
        list_above(g, t, 0.0);
        if (!sh.full) push_round(g, t, continuation, 1e300);
        if (sh.full) return rest;
        __syncthreads();
    }
    return rest * continuation;
}

__device__ u64 key_of(const Table& t, int slot) { return (u64)t.got[slot] << 32 | (u32)~t.keys[slot]; }

// A key that exactly k of the listed slots reach (or more, if keys were equal, which they are not).
__device__ u64 select(const Table& t, const Slot* list, int count, int k) {
    int tid = threadIdx.x, threads = blockDim.x;
    if (tid == 0) sh.prefix = 0, sh.wanted = k, sh.found = 0;
    __syncthreads();
    for (int shift = 56; shift >= 0; shift -= 8) {
        u64 prefix = sh.prefix;
        u32 wanted = sh.wanted;
        for (int bin = tid; bin < BINS; bin += threads) sh.bins[0][bin] = 0;
        __syncthreads();
        for (int i = tid; i < count; i += threads) {
            u64 key = key_of(t, list[i]);
            if (shift == 56 || key >> (shift + 8) == prefix >> (shift + 8))
                atomicAdd(&sh.bins[0][key >> shift & 255], 1u);
        }
        __syncthreads();
        int side = 0;
        for (int reach = 1; reach < BINS; reach *= 2, side ^= 1) {  // bins become sums from each to the last
            for (int bin = tid; bin < BINS; bin += threads)
                sh.bins[side ^ 1][bin] = sh.bins[side][bin] + (bin + reach < BINS ? sh.bins[side][bin + reach] : 0);
            __syncthreads();
        }
        for (int bin = tid; bin < BINS; bin += threads) {
            u32 from = sh.bins[side][bin], beyond = bin + 1 < BINS ? sh.bins[side][bin + 1] : 0;
            if (from >= wanted && beyond < wanted) {
                sh.prefix = prefix | (u64)bin << shift;
                sh.wanted = wanted - beyond;
                sh.found = from == wanted;
            }
        }
        __syncthreads();
        if (sh.found) break;
    }
    u64 least = sh.prefix;
    __syncthreads();
    return least;
}

// The list's slots that can matter for the k largest, in front, if there is room for them.
__device__ const Slot* shortlist(const Table& t, int k, u32 tie, int* count) {
    int all = sh.count, some = SOME * k < all ? SOME * k : all;
    u64 least = select(t, t.list, some, k) >> 32;  // at least k values reach it
    if (threadIdx.x == 0) sh.front = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < all; i += blockDim.x) {
        Slot slot = t.list[i];
        if ((u64)t.got[slot] + tie < least) continue;
        int place = atomicAdd(&sh.front, 1);
        if (place < t.wait_room) t.front[place] = slot;
    }
    __syncthreads();
    *count = sh.front <= t.wait_room ? sh.front : all;
    return sh.front <= t.wait_room ? t.front : t.list;
}

struct Top {
    int* nodes;
    float* weights;
    double* mass;
    int* kept;
    int* tied;
    int* tied_nodes;
};

// Write the k largest values and the tied nodes of one root, as keep_top of kernels/topk.py does.
__device__ void keep_top(const Table& t, int root, int row, int k, u32 tie, double worth, const Top& top) {
    int tid = threadIdx.x, threads = blockDim.x, count = sh.count, all = count;
    int chosen = k < count ? k : count;
    const Slot* list = t.list;
    u64 least = 0;
    if (count > k) {
        list = shortlist(t, k, tie, &count);
        least = select(t, list, count, k);
    }
    u64* keys = (u64*)t.amount;
    int* tied = (int*)(keys + k);
    if (tid == 0) sh.chosen = 0, sh.sum = 0, sh.last = 0xFFFFFFFFu, sh.above = 0, sh.group = 0;
    __syncthreads();
    for (int i = tid; i < count; i += threads) {
        u64 key = key_of(t, list[i]);
        if (key < least) continue;
        keys[atomicAdd(&sh.chosen, 1u)] = key;
        atomicAdd(&sh.sum, key >> 32);
        atomicMin(&sh.last, (u32)(key >> 32));
    }
    __syncthreads();
    double total = (double)sh.sum;
    for (int i = tid; i < k; i += threads) {
        long long out = (long long)row * k;
        if (i >= chosen) { top.nodes[out + i] = -1, top.weights[out + i] = 0.0f; continue; }
        int rank = 0;
        for (int j = 0; j < chosen; j++) rank += keys[j] > keys[i];
        top.nodes[out + rank] = (int)~(u32)keys[i];
        top.weights[out + rank] = (float)((double)(keys[i] >> 32) / total);
    }
    int kept = chosen, group = 0;
    if (all > k) {
        u64 last = sh.last;
        for (int i = tid; i < count; i += threads) {
            u64 value = t.got[list[i]];
            if (value > last + tie) atomicAdd(&sh.above, 1u);
            else if (value + tie >= last) {
                u32 place = atomicAdd(&sh.group, 1u);
                if (place < ROOM * k) tied[place] = t.keys[list[i]];
            }
        }
        __syncthreads();
        int above = sh.above, alike = sh.group;
        if (above + alike > k) {
            kept = above;
            if (above + alike <= ROOM * k) {
                group = alike;
                for (int i = tid; i < group; i += threads) {
                    int rank = 0;
                    for (int j = 0; j < group; j++) rank += tied[j] < tied[i];
                    top.tied_nodes[(long long)row * ROOM * k + rank] = tied[i];
                }
            } else if (above == 0) {  // dropping the group would leave nothing: the root alone
                group = 1;
                if (tid == 0) top.tied_nodes[(long long)row * ROOM * k] = root;
            }
        }
    }
    if (tid == 0) top.mass[row] = total * worth, top.kept[row] = kept, top.tied[row] = group;
}

// Rows 0 .. rows - 1 of the outputs, taken by blocks as they come. full[row] is set where the table was too small.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) push_roots(
    const long long* indptr, const int* indices, const float* weights, const double* strengths, int has_weights,
    const int* roots, const int* rows, int count, double continuation, double goal, double least, double budget,
    int k, double tie, unsigned char* tables, int size, int room, int wait_room, int* taken,
    int* nodes, float* out_weights, double* mass, int* kept, int* tied, int* tied_nodes, double* unassigned,
    int* full) {
    Graph g = {indptr, indices, has_weights ? weights : 0, has_weights ? strengths : 0};
    Top top = {nodes, out_weights, mass, kept, tied, tied_nodes};
    // Below 2^32 with room for rounding: a value is at most 1.
    double unit = (1.0 - continuation) * 4290000000.0, worth = 1.0 / 4290000000.0;
    u32 tie_units = (u32)(tie * 4290000000.0);
#ifdef WIDE
    size_t bytes = (size_t)size * 12 + (size_t)wait_room * 12 + (size_t)room * 4;
    Table t = table_at(tables + blockIdx.x * ((bytes + 15) / 16 * 16), size, room, wait_room);
#else
    Table t = table_at(memory, size, room, wait_room);
#endif
    for (int i = threadIdx.x; i < size; i += blockDim.x) t.keys[i] = EMPTY, t.got[i] = 0, t.sent[i] = 0;
    while (true) {
        if (threadIdx.x == 0) sh.row = atomicAdd(taken, 1);
        __syncthreads();
        if (sh.row >= count) return;
        int row = rows[sh.row], root = roots[sh.row];
        double left = push(g, t, root, continuation, goal, least, budget, unit);
        int is_full = sh.full;
        if (threadIdx.x == 0) unassigned[row] = left, full[row] = is_full;
        if (!is_full) {
            if (indptr[root + 1] == indptr[root] && threadIdx.x == 0) t.got[t.list[0]] = 4290000000u;
            __syncthreads();
            keep_top(t, root, row, k, tie_units, worth, top);
        }
        __syncthreads();
        int used = is_full ? size : sh.count;
        for (int i = threadIdx.x; i < used; i += blockDim.x) {
            int slot = is_full ? i : t.list[i];
            t.keys[slot] = EMPTY, t.got[slot] = 0, t.sent[slot] = 0;
        }
        __syncthreads();
    }
}
