// HEFT (Topcuoglu, Hariri, Wu) as one would write it in C++, to measure foreplan beside: the same
// arrays in, the same processors, starts and finishes out. No processor leaves, nothing has begun.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace {

struct Slot {
    double start, finish;
};

// A processor's tasks in the order of their starts.
using Timeline = std::vector<Slot>;

constexpr double equal_ranks = 1e-12;  // of the largest: what differs by less is a tie

struct Graph {
    int32_t tasks;
    const int32_t *order;  // topological
    const int32_t *in_ptr, *in_item;
    const double *item_size;
    const int32_t *item_producer;  // -1: from outside
};

// rank_u(i) = mean cost + max over its consumers of (mean transfer + rank_u(j)), equation 8
std::vector<double> upward_ranks(const Graph &graph, int32_t processors, const double *cost,
                                 double startup, double per_unit) {
    std::vector<double> rank(graph.tasks, 0.0);
    for (int32_t k = graph.tasks - 1; k >= 0; --k) {
        const int32_t task = graph.order[k];
        const double *row = cost + static_cast<int64_t>(task) * processors;
        double total = 0.0;
        for (int32_t p = 0; p < processors; ++p) total += row[p];
        rank[task] += total / processors;  // its consumers have left the longest way on there
        for (int32_t e = graph.in_ptr[task]; e < graph.in_ptr[task + 1]; ++e) {
            const int32_t item = graph.in_item[e], producer = graph.item_producer[item];
            if (producer < 0) continue;
            const double transfer = startup + graph.item_size[item] * per_unit;
            rank[producer] = std::max(rank[producer], transfer + rank[task]);
        }
    }
    return rank;
}

// The tasks, highest rank first; of equal ones the one that comes first in the topological order.
std::vector<int32_t> by_rank(const Graph &graph, const std::vector<double> &rank) {
    const double quantum = *std::max_element(rank.begin(), rank.end()) * equal_ranks;
    std::vector<std::pair<double, int32_t>> level(graph.tasks);
    for (int32_t k = 0; k < graph.tasks; ++k)
        level[k] = {quantum > 0 ? std::nearbyint(rank[graph.order[k]] / -quantum) : 0.0, k};
    std::sort(level.begin(), level.end());
    std::vector<int32_t> sorted(graph.tasks);
    for (int32_t k = 0; k < graph.tasks; ++k) sorted[k] = graph.order[level[k].second];
    return sorted;
}

// The first slot before which there is room for the task, or the end, and when it starts there.
std::pair<size_t, double> earliest_gap(const Timeline &busy, double ready, double duration) {
    if (busy.empty() || busy.back().finish <= ready) return {busy.size(), ready};
    const auto from = std::lower_bound(  // gaps that end before the task could are out
        busy.begin(), busy.end(), ready + duration,
        [](const Slot &slot, double finish) { return slot.start < finish; });
    size_t at = from - busy.begin();
    for (; at < busy.size(); ++at) {
        const double free = at == 0 ? ready : std::max(busy[at - 1].finish, ready);
        if (free + duration <= busy[at].start) return {at, free};
    }
    return {at, std::max(busy.back().finish, ready)};
}

}  // namespace

extern "C" void plain_heft(int32_t tasks, int32_t processors, int32_t hosts, const int32_t *order,
                           const int32_t *in_ptr, const int32_t *in_item, const double *item_size,
                           const int32_t *item_producer, const double *cost, const int32_t *host,
                           const double *startup, const double *per_unit, double mean_startup,
                           double mean_per_unit, int32_t *processor, double *start,
                           double *finish) {
    if (tasks == 0) return;
    const Graph graph{tasks, order, in_ptr, in_item, item_size, item_producer};
    const auto rank = upward_ranks(graph, processors, cost, mean_startup, mean_per_unit);
    std::vector<Timeline> busy(processors);
    std::vector<double> arrival(hosts);
    for (const int32_t task : by_rank(graph, rank)) {
        std::fill(arrival.begin(), arrival.end(), 0.0);
        for (int32_t e = in_ptr[task]; e < in_ptr[task + 1]; ++e) {
            const int32_t item = in_item[e], producer = item_producer[item];
            if (producer < 0) continue;
            const int64_t from = static_cast<int64_t>(host[processor[producer]]) * hosts;
            const double sent = finish[producer], size = item_size[item];
            for (int32_t h = 0; h < hosts; ++h) {
                const double there = sent + startup[from + h] + size * per_unit[from + h];
                arrival[h] = std::max(arrival[h], there);
            }
        }
        const double *duration = cost + static_cast<int64_t>(task) * processors;
        int32_t best = -1;
        double best_start = 0.0, best_finish = std::numeric_limits<double>::infinity();
        size_t best_at = 0;
        for (int32_t p = 0; p < processors; ++p) {
            const double ready = arrival[host[p]];
            if (ready + duration[p] >= best_finish) continue;
            const auto [at, begins] = earliest_gap(busy[p], ready, duration[p]);
            if (begins + duration[p] < best_finish) {
                best = p, best_at = at, best_start = begins;
                best_finish = begins + duration[p];
            }
        }
        processor[task] = best;
        start[task] = best_start;
        finish[task] = best_finish;
        busy[best].insert(busy[best].begin() + best_at, Slot{best_start, best_finish});
    }
}
