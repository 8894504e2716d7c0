"""What the report of the IC experiments says in any case."""

from __future__ import annotations

READING = """\
The paper's Delta is the difference of normalised areas: per vertex. No more than v vertices are
ELIGIBLE at a time, so that it cannot grow faster than v; the published exponents of 1.7 and of more
than 2 can only be those of the areas themselves, and the text reads them so (a gain per step that
grows at least linearly). The fits are therefore of n Delta; the exponent of Delta itself stands
beside. A lower hull is convex: a curve through it tends to an exponent above 1 whatever the data,
and two or three points decide it. Hence the fit through all dags beside it.

On the FFT ICO keeps about one level of it ELIGIBLE all the time, so that its area is about v^2 over
the number of levels, and LIFO leaves hardly any of that. At 10 levels this grows like v^1.87: an
exponent of 1.7 for LIFO needs another reading than ours, while the ratio of LIFO's lag to FIFO's
does not depend on it."""

HOW = """\
- **Familiar dags**: FFT of 3 to 10 levels, meshes of 10 to 100 levels; complete binary trees, which
  the paper does not play.
- **Compositions**: blocks drawn at random until the target size is reached, put in an order of
  priority and composed with random neighbours, merging random sinks and sources in random number.
  The paper does not give the blocks' sizes: ours are W and M with a up to 4 and d up to 5, N up to
  6. ICO's area is that of the order that the construction gives; ICO itself finds one of the same
  area where a dag counts as solved by it.
- **Intervals** are 95% by Student's t over the plays. A fit is by least squares of the differences
  themselves; the interval of b is from the curvature at the best fit.
- **The batched game** is played by its states: at each poll as many ELIGIBLE vertices are handed
  out as there are clients or vertices, whichever is less (the paper's formulas have the larger
  one), and all are executed before the next poll. Request sizes are exponential with the mean
  given, rounded up. In a play all four schedulers meet the same clients; the interval of a ratio of
  means is by the delta method over the plays.
- **Workflows and random dags**: the order of `ico` is that of `best_order`; random dags by
  `weft generate` (random layered and Standard Task Graph methods).
- **Volunteers**: one server holds all data, and transfers take no time. A volunteer gives a task a
  share of its peak speed that is uniform between {slowest:g} and 1, drawn anew for each task; no
  strategy knows it. It goes {churn:g} times in a span and stays away for {away:g} spans on average;
  what it had begun is lost. A quarter of them come later. A span is the longest path, or all work
  on all volunteers, whichever takes longer at {mean:g} of the peak speed. Generated tasks last
  exp(N(0, 1)); those of files as long as these say. Estimates are off by a factor that is
  log-uniform in 1/{error:g} .. {error:g}; "unknown": all tasks look alike. `static` plans by HEFT,
  and anew for what is lost; it takes so long that it runs in fewer worlds (in a sample, not in all
  sweeps), and is compared in those alone. Where speeds are known, they change {changes:g} times
  in a span instead, and all strategies see the present ones: the fastest idle volunteer gets the
  next task, and `min-min` may wait for a fast one."""
