"""What the report of the IC experiments says in any case."""

from __future__ import annotations

READING = """\
The paper's Delta is the difference of normalised areas: per vertex. No more than v vertices are
ELIGIBLE at a time, so that it cannot grow faster than v; the published exponents of 1.7 and of more
than 2 can only be those of the areas themselves, and the text reads them so (a gain per step that
grows at least linearly). The fits are therefore of n Delta; the exponent of Delta itself stands
beside. A lower hull is convex: a curve through it tends to an exponent above 1 whatever the data,
and two or three points decide it. Hence the fit through all dags beside it."""

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
- **Volunteers**: one server holds all data, and nothing is said about transfers. A volunteer's
  speed is uniform between {slowest:g} and 1 of its peak, drawn anew {changes:g} times in a span;
  it goes {churn:g} times in a span and stays away for {away:g} spans on average; what it had begun
  is lost. A quarter of them come later. A span is the longest path, or all work on all volunteers,
  whichever takes longer at their mean speed. Generated tasks last exp(N(0, 1)); those of files as
  long as these say. Estimates are off by a factor that is log-uniform in 1/{error:g} .. {error:g};
  "unknown": all tasks look alike. All strategies see the present speeds of the volunteers, and the
  fastest idle one gets the next task. `static` plans by HEFT, and anew for what is lost; it takes
  so long that it runs in fewer worlds, and is compared in those alone."""
