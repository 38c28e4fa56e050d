"""How samplers of the Gibbs family converge: parts of their error, measured and bounded, on small graphs.

Which method for which number of sweeps T and which graph, HGW19 Fig. 2 made practical: Gibbs has an error like 1 /
sqrt(T) and no bias. Herding begins like Gibbs, until its weights have been used a few times each; then its error falls
like 1 / T, and stops at a bias. The fewer weights share the work, the sooner the fall begins and the larger the bias:
one weight per variable, B bins, the sums of neighbours, their states, the states of all others. So count the weights W
of one variable (1, B, degree + 1, 2^degree, 2^(V - 1)) and compare with T:

* T below some tens (a picture, a large graph): one weight, ``bins(1)``; then ``neighbour_sum()``.
* T of hundreds or thousands: ``bins(B)`` with B = ``choose_bins(T)`` on graphs of large degree; ``blanket()`` where
  2^degree is well below T, as on rings, chains and grids.
* T of 10^4 and more: no bias can be hidden any more. ``random_bins(B)`` in place of ``bins(B)``; a bounded error
  (c = 1 to 10) in place of the blanket; ``complete()`` where 2^(V - 1) is below T / 10, which has no bias at all.
* Couplings so strong that the chain mixes badly (D^z decides): all are like Gibbs; anneal, or sample blocks.
* Weak couplings: take Rao-Blackwellised marginals too, of herded samples as well.
* A bias that must not be: Gibbs, complete herding, or a quasi-random sequence.

What it rests on: mean errors, by scripts of the repository that make the figures.

======================================  ======  ======  =======  =======  =======
full graph of 8, E[x8] (hgw19_fig1.py)  T = 32  2^8     2^11     2^14     2^19
======================================  ======  ======  =======  =======  =======
Gibbs                                   0.12    0.046   0.017    0.0069   0.0011
one bin                                 0.029   0.0010  0.00076  0.00080  0.00080
4 bins                                  0.035   0.0025  0.00073  0.00053  0.00053
16 bins                                 0.050   0.0053  0.00067  0.00010  6.1e-5
64 bins                                 0.080   0.0088  0.0013   0.00014  5.5e-6
blanket, here complete (128 weights)    0.13    0.028   0.0033   0.00052  1.5e-5
======================================  ======  ======  =======  =======  =======

==========================================  ======  =====  =====  ======  =======
ring of 9, E[sum] (hgw19_fig1.py)           T = 32  2^8    2^11   2^14    2^19
==========================================  ======  =====  =====  ======  =======
Gibbs                                       0.81    0.33   0.10   0.041   0.0073
blanket: 2 neighbours, 4 weights            0.44    0.059  0.011  0.0079  0.0081
with dummy edges: 4 neighbours, 16 weights  0.56    0.11   0.013  0.0022  0.0011
6 neighbours, 64 weights                    0.81    0.19   0.025  0.0026  0.00023
8 neighbours, complete, 256 weights         1.1     0.28   0.053  0.0070  0.00022
==========================================  ======  =====  =====  ======  =======

Bias of whole joints (L1, T = 2^24): ring of 8 (hgw19_parts.py, Fig. 7): blanket 0.0068, c = 1 0.0022, c = 10 0.00096,
Gibbs 0.0012. Strongly coupled full graph of 8 (Fig. 8): DHG(16) 0.054, circular DHG(16) 0.011, RDHG(16) 0.0073,
Gibbs 0.0024; RDHG is ahead of DHG from T = 2^12 on.
A hundred shapes with 30% of their pixels flipped, T = 31 (hgw19_fig11.py --start random --order rows --factor 2), wrong
pixels: one weight 5.5%, sums 6.0%, blanket 6.9%, quasi-random 8.7%, Gibbs 9.3%.
"""

from __future__ import annotations

from herdner.studies.convergence.choice import ErrorBoundChoice, choose_error_bound
from herdner.studies.convergence.correlation import CorrelationEstimate
from herdner.studies.convergence.counts import VisitCounts, count_visits, focus_variable
from herdner.studies.convergence.errors import (
    ErrorParts,
    Lambdas,
    approx_bound,
    best_bins,
    choose_bins,
    expectation_error,
    herding_bound,
    rao_blackwell_bound,
    rao_blackwell_error,
)
from herdner.studies.convergence.exact import Focus, dobrushin_coefficient, gibbs_kernel, joint_distribution
from herdner.studies.convergence.theorem import Convergence

__all__ = [
    "Convergence", "CorrelationEstimate", "ErrorBoundChoice", "ErrorParts", "Focus", "Lambdas", "VisitCounts",
    "approx_bound", "best_bins", "choose_bins", "choose_error_bound", "count_visits", "dobrushin_coefficient",
    "expectation_error", "focus_variable", "gibbs_kernel", "herding_bound", "joint_distribution",
    "rao_blackwell_bound", "rao_blackwell_error",
]  # fmt: skip
