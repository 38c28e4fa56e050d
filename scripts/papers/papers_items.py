"""Functions that read the results of the papers' scripts and compare them with the papers, as papers.toml assigns.

A table ``[[item]]`` of papers.toml has these keys:

* ``of``: the paper, a key of PAPERS.
* ``name``: the name of the tables or figures.
* ``paper``: the result that the paper states.
* ``command``: a key of ``[commands]``; omitted if no script covers the item.
* ``reading``: a function of this module, which maps the results of the script (and the arguments ``with``, if set) to a
description and to True if the results agree with the paper, False if they depart, or None if they decide nothing.
* ``condition``: the condition under which herdner's result agrees with the paper, as the reading or the named tests
check it. Items that are not done, or have no measurement of their own, have no condition.
* ``experiment``: the experiment whose results are read, if its name differs from the command's.
* ``why``: what the paper does not specify, or why herdner's result departs from the paper.
* ``verdict``: the verdict of an item for which no script runs.
* ``beyond``: true if the paper does not have the experiment, so that its result can neither agree nor depart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Results = dict[str, Any]
Reading = tuple[str, bool | None]
Reader = Callable[[Results], Reading]


@dataclass(frozen=True)
class Item:
    """One table or figure, with the keys of papers.toml."""

    of: str
    name: str
    paper: str
    command: str | None = None
    reading: Reader | None = None
    why: str = ""
    experiment: str = ""
    verdict: str | None = None
    condition: str = ""
    beyond: bool = False

    def judge(self, holds: bool | None) -> str:
        """Return the verdict: whether the condition ``holds``, or None if the results do not decide this."""
        if holds is None:
            return "not decided"
        if self.beyond:
            return f"not in the paper, the condition {'holds' if holds else 'fails'}"
        return "agrees" if holds else "departs"


HEAD = """# The papers, item by item

This page lists every table, figure and theorem of the five papers that herdner implements. Each row of the tables is
one item: one or more tables, figures or theorems of a paper, or one claim about them. It has the result of the paper,
the result of herdner, and a verdict: herdner's result "agrees" with the paper or "departs" from it. The verdict of a
drawing or of a step of a proof is "nothing to measure". The command `python scripts/papers/all.py` writes this page.

{counts}

* The columns "result of herdner" and "verdict" are computed from the output of the command. The verdict is "agrees"
  if the condition in the row holds, else "departs". Some conditions also state when the results are inconclusive; the
  verdict is then "not decided". Experiments that a paper does not have are "not in the paper". A condition tests the
  order of methods or the law that the paper states. It tests digits only if the item names digits.
* Items without a command are checked by the tests that their condition names.
* If `all.py` does not run the command of an item, the row keeps its earlier result.
* Commands run in the folder `scripts/papers`. Names in braces are folders of pictures and texts.
* A result marked "(quick)" comes from a run with the small sizes of `--quick`. Such a run shows the order of the
  methods, but not the last digits. Other results have the paper's sizes, or the sizes that the item names.
* If a condition is weaker than the claim of the paper, the verdict states this.

HG13: Bornn et al., *Herded Gibbs Sampling* (2013). HG16: Chen et al., *Herded Gibbs Sampling*, the journal version
(JMLR 17, 2016). DoGS17: Mitliagkas and Mackey, *Improving Gibbs Sampler Scan Quality with DoGS* (2017).
FWSS18: Futami et al., *Frank-Wolfe Stein Sampling* (2018).
HGW19: Yamashita and Suzuki, *Convergence analysis of herded-Gibbs-type sampling algorithms* (2019).
"""
PAPERS = {
    "HG": "Herded Gibbs sampling (HG13, HG16)",
    "DoGS17": "Scans of Gibbs samplers (DoGS17)",
    "FWSS18": "Frank-Wolfe Stein sampling (FWSS18)",
    "HGW19": "Weight sharing (HGW19)",
}
PICTURES = {  # plots of scripts/figures/page_pictures.py above the items of a paper, and their captions
    "HG": ("gibbs", "Error of the marginals of a 6 x 6 Ising grid against sweeps, for Gibbs and herded Gibbs sampling"),
    "DoGS17": (
        "scan",
        "Guaranteed error bound after each update, for a systematic, an optimised and a random scan",
    ),
    "FWSS18": (
        "stein",
        "Squared MMD against the number of particles, for FWSS with three step rules and for SVGD (Fig. 3b)",
    ),
    "HGW19": (
        "sharing",
        "Mean error of 10 runs against sweeps, for Gibbs, herded Gibbs and DHG with 4 and 64 bins (Fig. 1, right)",
    ),
}


def g(value: float) -> str:
    return f"{value:.3g}"


def each(found: Mapping[str, float]) -> str:
    """Return a text with each name and its number."""
    return ", ".join(f"{name} {g(value)}" for name, value in found.items())


# ---- HG13, HG16 ----


EPSILONS = (0.1, 0.01, 0.001, 0.0001)


def fig5(r: Results) -> Reading:
    ends = {m: [r[f"eps={e}, {m}"]["median"][1][-1] for e in EPSILONS] for m in ("Gibbs", "herded Gibbs")}
    words = "; ".join(f"{m} {', '.join(map(g, values))}" for m, values in ends.items())
    ahead = [b < a for a, b in zip(ends["Gibbs"], ends["herded Gibbs"], strict=True)]
    late = np.array(r["lengths"]) >= r["lengths"][-1] / 16
    slopes = {
        m: [_line(np.log(np.array(r["lengths"])[late]), np.log(np.array(r[f"eps={e}, {m}"]["median"][1])[late]))[0]
            for e in EPSILONS]
        for m in ends
    }  # fmt: skip
    words += "; slopes: " + "; ".join(f"{m} {', '.join(f'{x:.2f}' for x in values)}" for m, values in slopes.items())
    fine = max(slopes["herded Gibbs"]) < -0.8 < min(slopes["Gibbs"])
    return f"L1 error for eps .1, .01, .001, .0001: {words}", all(ahead) and fine


def mcqmc(r: Results) -> Reading:
    def ratios(method: str, at: int) -> list[float]:
        of = [[r[f"eps={e}, {m}"]["median"][1][at] for m in (method, "Gibbs")] for e in EPSILONS]
        return [a / b for a, b in of]

    half = min(range(len(r["lengths"])), key=lambda k: abs(2 * r["lengths"][k] - r["lengths"][-1]))
    ways = {
        "whole period": ratios("MCQMC", -1), "half of it": ratios("MCQMC", half),
        "each number once": ratios("MCQMC, once", -1),
    }  # fmt: skip
    words = "; ".join(f"{name} {', '.join(map(g, found))}" for name, found in ways.items())
    return f"MCQMC / Gibbs for eps .1, .01, .001, .0001: {words}", all(x > 0.8 for x in ways["whole period"])


def fig7(r: Results) -> Reading:
    ends = {name: r[name]["error"][-1] for name in ("herded Gibbs", "complete herded Gibbs", "Gibbs")}
    return each(ends), ends["herded Gibbs"] > 10 * ends["complete herded Gibbs"]


def table2(r: Results) -> Reading:
    table, printed = r["table"], r["printed"]
    words = [f"{m} {'/'.join(f'{1000 * cell[0]:.0f}' for cell in cells)}" for m, cells in table.items()]
    ours = [sorted(table, key=lambda m, k=k: table[m][k][0]) for k in range(4)]
    theirs = [sorted(printed, key=lambda m, k=k: printed[m][k]) for k in range(4)]
    return "x 1000, sigma 2/4/6/8: " + ", ".join(words), ours == theirs


def conventions(r: Results) -> Reading:
    best, score = max(r["conventions"].items(), key=lambda item: sum(item[1]["pairs"]))
    best = best.removeprefix("Convention(").rstrip(")").replace("'", "")
    n = sum(all(k == 10 for k in one["pairs"]) for one in r["conventions"].values())
    return (
        f"{n} of {len(r['conventions'])} conventions give the order at all sigmas; the best has {score['pairs']} of 10"
        f" pairs in order ({best})"
    ), n > 0


def fig9(r: Results) -> Reading:
    ends = {m: values[-1] for m, values in r["fig9"].items()}
    fields = [v for m, v in ends.items() if m.startswith("mean field")]
    fine = max(ends["HG"], ends["HG-shared"]) < ends["Gibbs"] and ends["HG-shared"] < min(fields)
    return "after 30 sweeps, x 1000: " + ", ".join(f"{m} {1000 * v:.0f}" for m, v in ends.items()), fine


def fig11(sampler: str) -> Reader:
    def found(r: Results) -> Reading:
        (line,) = (line for line in r["differences"] if line.startswith(sampler))
        n = sum(part.strip()[0] in "+-" for part in line.split(",")[1:])
        return f"compared with Viterbi, {n} names added or missing", n == 0

    return found


def table3(r: Results) -> Reading:
    rows = next(iter(r.values()))["tables"]["chain of a sentence, random start"]["rows"]
    means = {(row["method"], row["sweeps"]): sum(row["f1"]) / len(row["f1"]) for row in rows}
    herded, annealed = (
        {n: f for (name, n), f in means.items() if name == method} for method in ("herded Gibbs", "annealed Gibbs")
    )
    viterbi, settled = means["Viterbi", None], sorted(herded)[1:]
    words = f"herded Gibbs {', '.join(f'{f:.2f}' for f in herded.values())}, annealed"
    words = f"F1 after {', '.join(map(str, herded))} sweeps: {words} {', '.join(f'{f:.2f}' for f in annealed.values())}"
    fine = all(abs(herded[n] - viterbi) < 0.2 and herded[n] >= annealed[n] for n in settled)
    return f"{words}, Viterbi {viterbi:.2f}", fine


def table3_seconds(r: Results) -> Reading:
    rows = next(iter(r.values()))["tables"]["chain of a sentence, random start"]["rows"]
    f1 = {(row["method"], row["sweeps"]): sum(row["f1"]) / len(row["f1"]) for row in rows}
    seconds = {(row["method"], row["sweeps"]): float(np.mean(row["seconds"])) for row in rows}
    herded, annealed = ("herded Gibbs", 400), ("annealed Gibbs", 800)
    words = [f"{m} {', '.join(g(seconds[m, n]) for n in (100, 400, 800))}" for m in ("herded Gibbs", "annealed Gibbs")]
    fine = seconds[herded] < seconds[annealed] and f1[herded] > f1[annealed]
    regular = all(
        1.1 * seconds[m, n] < seconds[m, more]
        for m in ("herded Gibbs", "annealed Gibbs")
        for n, more in ((100, 400), (400, 800))
    )
    return f"seconds: {'; '.join(words)}; Viterbi {g(seconds['Viterbi', None])}", fine if regular else None


def lemma1(r: Results) -> Reading:
    t = r["lemma 1"]
    return f"at most {t['largest']:.6f} in {t['checks']} runs of 10,000 samples", t["largest"] <= 1 + 1e-9


def burn_in(r: Results) -> Reading:
    t = r["burn-in"]
    words = f"{t['checks']} lengths and graphs, {t['above']} above the bound; the largest is {g(t['nearest'])} of it"
    return f"{words}; burn-in of up to {t['longest burn-in']} sweeps", t["above"] == 0


def theory2(r: Results) -> Reading:
    one = r["rationally independent"]
    dependent = r["dependent"]["last"]
    words = f"L1 falls from {g(one['first'])} to {g(one['last'])}; dependent pi_i: it stays at {g(dependent)}"
    return words, one["last"] < one["first"] / 20 and dependent > 10 * one["last"]


def theory3(r: Results) -> Reading:
    t = r["theorem 3"]
    words = f"{t['checks']} lengths and graphs, {t['above']} above the bound; the largest is {g(t['nearest'])} of it"
    return words, t["above"] == 0


def theory34(r: Results) -> Reading:
    t = r["equation 34"]
    return f"{t['checks']} visit counts, {t['below']} below l T - B", t["below"] == 0


def parallel16(r: Results) -> Reading:
    ends = {
        name: {scan: found[f"HG, {scan}"][-1] for scan in ("in order", "coloured", "Jacobi")}
        for name, found in r["errors"].items()
    }
    gibbs = {name: found["Gibbs, in order"][-1] for name, found in r["errors"].items()}
    words = "; ".join(f"{name}: {each(found)} (Gibbs {g(gibbs[name])})" for name, found in ends.items())
    level = all(found["coloured"] < 1.3 * found["in order"] for found in ends.values())
    wrong = all(found["Jacobi"] > 5 * found["in order"] for found in ends.values())
    threads = "two threads give the states of one" if r["same"] else "two threads give OTHER states than one"
    words = f"L1 of the joint after {r['lengths'][-1]} sweeps, {words}; {threads}"
    return words, level and wrong and r["same"]


# ---- DoGS17 ----


def estimated17(r: Results) -> Reading:
    names = {"systematic": "systematic", "bound": "DoGS, bound", "estimate": "DoGS, estimate"}
    words = [f"{s}: {each({k: f[name] for k, name in names.items()})}" for s, f in r["strengths"].items()]
    ahead = [f["DoGS, estimate"] < 1.02 * f["DoGS, bound"] for f in r["strengths"].values()]
    return f"mean bias of a corner after {r['steps']} updates, by coupling: {'; '.join(words)}", all(ahead)


def lemma5(r: Results) -> Reading:
    t = r["Lemma 5"]
    words = f"{t['checks']} couplings, {t['below']} below; the nearest costs {g(t['nearest'])} times the variation"
    return words, t["below"] == 0


def proposition9(r: Results) -> Reading:
    t = r["Proposition 9"]
    words = f"{t['checks']} variations, {t['above']} above the bound; the largest is {g(t['nearest'])} of it"
    return f"{words}; after 300 sweeps at most {g(t['last'])}", not t["above"] and t["last"] < 1e-6


def theorem8(r: Results) -> Reading:
    t = r["Theorem 8"]
    words = f"{t['checks']} scans and influence bounds, {t['above']} above"
    return f"{words}; the largest is {g(t['nearest'])} of its bound", t["above"] == 0


def theorem_influence(name: str) -> Reader:
    def found(r: Results) -> Reading:
        t = r[name]
        words = f"{t['checks']} entries, {t['below']} below the exact influence; {100 * t['exact']:.0f} % are exact"
        fine = t["below"] == 0 and (name != "Theorem 11" or t["exact"] > 0.5)
        return f"{words}, the median ratio exact / bound is {t['median']:.2f}", fine

    return found


def ratios(r: Results) -> Reading:
    found = [one["systematic_over_dogs"] for one in r["replicates"]]
    words = f"DoGS {', '.join(f'{x:.0f}' for x in found)} times below systematic at the last budget"
    return words, min(found) > 20 and float(np.exp(np.log(found).mean())) >= 100


def uniform(r: Results) -> Reading:
    each = [one["guarantees"] for one in r["replicates"]]
    ratio = np.array([np.array(one["uniform random"]) / np.array(one["systematic"]) for one in each])
    middle = np.exp(np.log(ratio).mean(axis=0))
    words = (
        f"uniform / systematic, geometric mean of {len(each)} replicates: {g(middle[0])} at {r['budgets'][0]} updates"
    )
    return f"{words} to {g(middle[-1])} at {r['budgets'][-1]}; the least is {g(ratio.min())}", bool((ratio > 1).all())


def iterated(r: Results) -> Reading:
    gains = [_gains(one["guarantees"], -1) for one in r["replicates"]]
    words = ", ".join(f"{first:.0f} and {more:.0f}" for first, more in gains)
    return f"factors gained by one run and by its iteration: {words}", all(first > more > 1 for first, more in gains)


def _gains(guarantees: Results, at: int) -> tuple[float, float]:
    """Return the ratio of the guarantees of systematic scan and DoGS, and the further ratio by iterated DoGS."""
    systematic, once, more = (guarantees[name][at] for name in ("systematic", "DoGS", "iterated DoGS"))
    return systematic / once, once / more


def speed_up(least: Mapping[str, float]) -> Reader:
    """Return a reading of the speed-up, which must exceed ``least`` for each number of samples in it."""

    def found(r: Results) -> Reading:
        n, t = r["n_steps"], r["seconds_a_sample"]
        times = {k: k * t["systematic"] / (r["setup_seconds"] + k * t["DoGS"]) for k in (1, 100, 10**6)}
        words = f"{n['DoGS']} updates in place of {n['systematic']:,}, set-up {g(r['setup_seconds'])} s; speed-up for"
        fine = all(times[int(k)] > value for k, value in least.items())
        return f"{words} 1, 100, 10^6 samples: {', '.join(map(g, times.values()))}", fine

    return found


def dogs4_scans(name: str) -> Reader:
    def found(r: Results) -> Reading:
        held = r["grids"][name]["guarantees"]
        names = ("iterated DoGS", "DoGS", "systematic", "uniform random")
        rows = np.array([held[k] for k in names])
        gains = [_gains(held, k) for k in range(rows.shape[1])]
        words = (
            f"at the last budget: {each({k: held[k][-1] for k in names})}; factors gained by one run and by iteration:"
        )
        ordered = (rows[:2] < rows[1:3]).all() and (rows[2] <= rows[3]).all()
        return f"{words} {g(gains[-1][0])} and {g(gains[-1][1])}", bool(ordered) and all(a > b for a, b in gains)

    return found


def dogs2(r: Results) -> Reading:
    n, t, side = r["n_steps"], r["seconds_a_sample"], r["side"]
    words = f"{side} x {side}: {n['DoGS']} updates in place of {n['systematic']:,}, {n['DoGS, fields']} with fields"
    return f"{words}; {g(t['DoGS'])} s a sample in place of {g(t['systematic'])}", n["DoGS"] < n["systematic"] / 1000


def dogs3(r: Results) -> Reading:
    words, ahead = [], []
    for name, grid in r["grids"].items():
        cells = grid["updates_to_level"]
        details = ", ".join(f"{k} {mean:.0f} (sd {sd:.0f})" for k, (mean, sd) in cells.items())
        words.append(f"{name}, error {g(grid['level'])}: {details}")
        ahead.append(2 * cells["dogs"][0] < cells["uniform"][0])
    return f"updates to one error for all scans: {'; '.join(words)}", all(ahead)


def dogs4(name: str) -> Reader:
    def found(r: Results) -> Reading:
        held = r["grids"][name]["guarantees"]
        means = {k: _mean_bias(v) for k, v in r["grids"][name]["bias"].items()}
        ends = {k: f"{g(held[k][0])} to {g(held[k][-1])}, mean bias {g(means[k])}" for k in ("DoGS", "systematic")}
        words = "guarantee " + "; ".join(f"{k} {v}" for k, v in ends.items())
        fine = held["DoGS"][-1] <= held["systematic"][-1] / 2 and means["DoGS"] <= means["systematic"] / 2
        return words, fine

    return found


def dogs7(r: Results) -> Reading:
    error, scan, apart = r["errors"], next(iter(r["scans"].values())), r["DoGS - systematic"]
    a, b, c = (error[m]["mean"] for m in ("DoGS", "systematic", "PLSA"))
    words = f"error DoGS {a:.3f}, systematic {b:.3f}, PLSA {c:.3f}; DoGS - systematic {apart['mean']:.4f} (s.e."
    words = f"{words} {apart['se']:.4f}, {apart['pictures']} pictures); {scan['updates']} of {scan['of']} updates"
    return words, a < b < c and 4 * scan["updates"] < scan["of"]


def loose_guarantee(r: Results) -> Reading:
    last = {
        scan: {f: one["guarantees"][scan][-1] for f, one in r["factors"].items()} for scan in ("DoGS", "systematic")
    }
    dogs = list(last["DoGS"].values())
    words = f"last guarantee by factor: DoGS {each(last['DoGS'])}; systematic {each(last['systematic'])}"
    return words, dogs == sorted(dogs) and all(a < last["systematic"][f] for f, a in last["DoGS"].items())


def loose_bias(r: Results) -> Reading:
    dogs, systematic = (
        {f: _mean_bias(one["bias"][scan]) for f, one in r["factors"].items()} for scan in ("DoGS", "systematic")
    )
    words = f"mean bias by factor: {each(dogs)}; systematic {each(systematic)}"
    return words, max(dogs.values()) < min(2 * dogs["1.0"], *systematic.values())


def _mean_bias(found: Results) -> float:
    """Return the mean absolute bias over all numbers of updates."""
    return sum(abs(b) for b in found["bias"]) / len(found["bias"])


# ---- FWSS18 ----


def _is_better_fit(fit: float, other: float) -> bool:
    """Return True if a fit leaves at most half of the variance that another fit leaves, by their R^2."""
    return 1 - fit <= (1 - other) / 2


def toy(step: str) -> Reader:
    """Return a reading of the decay of MMD with an exact oracle, for the step rule ``step``."""

    def form(t: Results) -> tuple[str, bool, bool, float]:
        power, rate = t["exponent of N"], t["rate per particle"]
        fits = [t["R^2, exponent of N"], t["R^2, rate per particle"]]
        words = f"N^{power:.2f} (R^2 {fits[0]:.3f}) or e^({rate:.3f} N) ({fits[1]:.3f})"
        return words, _is_better_fit(fits[1], fits[0]), _is_better_fit(fits[0], fits[1]), power

    def found(r: Results) -> Reading:
        own, _, _, _ = form(r["theory"][step])
        exact, geometric, as_power, power = form(r["theory"][f"{step}, exact oracle"])
        undecided = None if not geometric and not as_power else geometric
        fine = power < -0.9 if step == "constant" else undecided
        return f"MMD ~ {exact} by an exact oracle, {own} by 50 moves of Adam", fine

    return found


def particles(r: Results) -> Reading:
    names = ("FWSS, h = 0.3", "FWSS, h = 0.05", "FWSS, h = 1.5", "FWSS, median", "SVGD, h = 0.3")
    found = {name: r["particles"][name][1] for name in names}
    ahead = found["FWSS, h = 0.3"] < min(found["FWSS, h = 0.05"], found["FWSS, h = 1.5"])
    return f"MMD^2: {each(found)}", ahead


def cached(r: Results) -> Reading:
    found = {name: r["particles"][name] for name in ("Cache-FWSS", "Lazy FWSS", "FWSS, h = 0.3")}
    words = "; ".join(f"{k}: MMD^2 {g(v)} in {g(t)} s" for k, (t, v) in found.items())
    (cache_time, cache), (time, plain) = found["Cache-FWSS"], found["FWSS, h = 0.3"]
    return words, cache < 2 * plain and cache_time < time


def stein10(r: Results) -> Reading:
    found = r["stein points"]
    six = {name: value for name, value in found.items() if name != "FWSS"}
    best = min(six, key=lambda name: six[name])
    return f"MMD^2: {each(found)}", min(six.values()) > found["FWSS"] and best == "greedy, monte-carlo"


def fig3b(r: Results) -> Reading:
    fits = {"FWSS": r["theory"]["constant"], "SVGD": r["theory"]["SVGD"]}
    words = [
        f"{name} ~ N^{t['exponent of N']:.2f} (R^2 {t['R^2, exponent of N']:.3f}) or e^({t['rate per particle']:.3f} N)"
        f" ({t['R^2, rate per particle']:.3f})"
        for name, t in fits.items()
    ]
    moves = ", ".join(f"{g(value)} for L = {n}" for n, value in r["moves"].items())
    geometric = [_is_better_fit(t["R^2, rate per particle"], t["R^2, exponent of N"]) for t in fits.values()]
    return f"MMD of {'; '.join(words)}; MMD^2 of FWSS {moves}", all(geometric)


COSTS = {"SVGD": "SVGD", "FWSS": "FWSS", "Stein points": "SP"}  # methods of Table 1 and their keys in the results


def costs18(r: Results) -> Reading:
    power = {name: r["costs"][key]["exponent of seconds"] for name, key in COSTS.items()}
    words = ", ".join(f"{name} N^{value:.2f}" for name, value in power.items())
    fine = power["SVGD"] > 1.5 and max(power["FWSS"], power["Stein points"]) < 1.3
    return f"seconds of an iteration: {words}", fine


def evaluations18(r: Results) -> Reading:
    found = {name: round(r["costs"][key]["scores at the largest N"]) for name, key in COSTS.items()}
    n = found["SVGD"]  # SVGD evaluates the score of each of N particles
    words = ", ".join(f"{name} {value}" for name, value in found.items())
    return f"evaluations of an iteration at the largest N: {words}", list(found.values()) == [n, n, 4 * n]


def _first_time(curve: list[list[float]], level: float) -> float:
    """Return the time at which a curve of accuracy first reaches a level, or infinity."""
    return next((t for t, a in zip(*curve, strict=True) if a >= level), float("inf"))


def _sooner(name: str, other: str) -> Reader:
    def found(r: Results) -> Reading:
        curves, level = r["accuracy"], r["accuracy"][other][1][-1]
        when = _first_time(curves[name], level)
        reached = (
            f"{name} reaches {level:.4f} after {when:.2f} s" if when < float("inf") else f"{name} never reaches it"
        )
        words = f"{other} ends at {level:.4f} after {curves[other][0][-1]:.2f} s; {reached}"
        return f"{words}, and ends at {curves[name][1][-1]:.4f}", when < curves[other][0][-1]

    return found


def accuracy(r: Results) -> Reading:
    return _sooner("FWSS, MAP start", "SVGD")(r)


def prior_start(r: Results) -> Reading:
    return _sooner("FWSS, prior start", "SVGD")(r)


def other_methods(r: Results) -> Reading:
    curves = r["accuracy"]
    ends = {name: curve[1][-1] for name, curve in curves.items()}
    times = {name: _first_time(curves[name], ends["SGLD"]) for name in ("FWSS, MAP start", "SGLD")}
    words = "; ".join(f"{name} {value:.4f} ({curves[name][0][-1]:.1f} s)" for name, value in ends.items())
    until = ", ".join(f"{name} {t:.2f} s" for name, t in times.items())
    fine = times["FWSS, MAP start"] < times["SGLD"] and ends["Stein points"] < ends["FWSS, MAP start"]
    return f"{words}; first at SGLD's final accuracy: {until}", fine


FWSS_WEIGHTS = ("FWSS, MAP start, equal weights", "FWSS, MAP start, corrected")


def geometric_logistic(r: Results) -> Reading:
    words, fine = [], []
    for name in FWSS_WEIGHTS:
        sizes, values = np.array(r["mmd2"][name][0], float), np.log(np.array(r["mmd2"][name][1])) / 2
        (power, other), (rate, fit) = _line(np.log(sizes), values), _line(sizes, values)
        words.append(f"{name}: MMD ~ N^{power:.2f} (R^2 {other:.3f}) or e^({rate:.4f} N) ({fit:.3f})")
        fine.append(_is_better_fit(fit, other))
    return "; ".join(words), all(fine)


def svgd_smaller(r: Results) -> Reading:
    ends = {m: values[1][-1] for m, values in r["mmd2"].items()}
    words = f"MMD^2 at N = {r['mmd2']['SVGD, prior'][0][-1]}: " + "; ".join(f"{m} {g(v)}" for m, v in ends.items())
    return words, ends["SVGD, prior"] < min(ends[name] for name in FWSS_WEIGHTS)


def _means(r: Results, data: str) -> dict[str, list[float]]:
    """Return the means of RMSE, log-likelihood and seconds over the splits, by method."""
    return {method: np.mean(values, axis=0).tolist() for method, values in r[data].items() if values}


def neural(data: str, method: str, rmse: float, ll: float) -> Reader:
    def found(r: Results) -> Reading:
        a, b, _ = _means(r, data)[method]
        return f"RMSE {g(a)}, LL {b:.2f}", a <= 1.1 * rmse and b >= ll - 0.1

    return found


def neural_order(data: str) -> Reader:
    def found(r: Results) -> Reading:
        (a, b, _), (c, d, _) = (_means(r, data)[method] for method in ("FWSS, mode", "SVGD, prior"))
        return f"FWSS RMSE {g(a)}, LL {b:.2f}; SVGD {g(c)}, {d:.2f}", a < c and (b < d) == (data == "naval")

    return found


def neural_time(data: str, seconds: float) -> Reader:
    def found(r: Results) -> Reading:
        _, _, measured = _means(r, data)["FWSS, mode"]
        return f"FWSS {measured:.0f} s", measured <= seconds

    return found


def initial18(r: Results) -> Reading:
    words, fine = [], []
    for data, splits in r.items():
        for curves in splits:
            (seconds, ours), (times, theirs) = curves["FWSS"], curves["SVGD"]
            before = [max(np.searchsorted(times, t, side="right") - 1, 0) for t in seconds]
            ahead = [error < theirs[at] for error, at in zip(ours, before, strict=True)]
            fine.append(all(ahead))
            ends = f"at the end {g(ours[-1])} and {g(theirs[-1])}"
            least = f"least RMSE of FWSS {g(min(ours))} after {seconds[int(np.argmin(ours))]:.0f} s"
            words.append(
                f"{data}: FWSS is ahead with {sum(ahead)} of {len(ahead)} numbers of particles; {least}; {ends}"
            )
    return "; ".join(words), all(fine)


def theorems18(r: Results) -> Reading:
    sizes = f"d {g(r['first']['diameter'])}, R {g(r['first']['radius'])} in the first"
    words = f"{r['above']} of {r['checks']} above the bound, on {r['problems']} problems; the last is {g(r['nearest'])}"
    return f"{words} of its bound at most; {sizes}", not r["above"]


def contraction18(r: Results) -> Reading:
    t = r["contraction"]
    words = f"{t['above']} of {t['checks']} above the bound; the largest is {g(t['nearest'])} of it"
    return f"{words}; bound with 10^7 particles {g(t['last'])}", not t["above"] and t["last"] < 1e-6


def blocks_alike(r: Results) -> Reading:
    return f"the particles differ by at most {g(r['blocks'])}", r["blocks"] == 0


def lazy18(r: Results) -> Reading:
    t = r["lazy"]
    words = f"{t['above']} of {t['checks']} above the bound, for K = 1, 2, 8; the largest is {g(t['nearest'])} of it"
    return f"{words}; Phi falls to {g(t['phi'])}", not t["above"]


def variance18(r: Results) -> Reading:
    return f"they differ by at most {g(r['eq. 46 - eq. 47'])}", r["eq. 46 - eq. 47"] < 1e-9


def variants18(r: Results) -> Reading:
    found = r["boundary"]
    geometric = max(found["away"]["per step"], found["pairwise"]["per step"]) < 0.99
    words = f"MMD after {r['particles']} steps: {each({step: one['last'] for step, one in found.items()})}"
    return words, geometric and found["line-search"]["per step"] > 0.995


def fig2b18(r: Results) -> Reading:
    found = r["protein, MMD^2"]
    falls = {m: found[m] for m in ("FWSS, mode", "FWSS, prior")}
    words = [f"{m} {g(v[0])} to {g(v[-1])} at N = {len(v)}" for m, v in falls.items()]
    words += [f"{m} {g(v[-1])}" for m, v in found.items() if m not in falls]
    return f"MMD^2: {'; '.join(words)}", all(v[-1] < v[0] / 2 for v in falls.values())


def dimensions18(r: Results) -> Reading:
    def exponents(weights: str, rule: str) -> str:
        return "/".join(f"{r[f'{d} dimensions, {weights}, {rule}']['exponent']:.2f}" for d in (2, 3, 5, 10))

    words = "; ".join(f"{w}, {rule} {exponents(w, rule)}" for w in ("equal weights", "quadrature weights")
                      for rule in ("fixed", "median", "ksd"))  # fmt: skip
    corrected = [f for name, f in r.items() if "quadrature" in name]
    fine = all(f["mmd2"][-1] < f["exact samples"] for f in corrected)
    return f"MMD ~ N to the power of, in 2/3/5/10 dimensions: {words}", fine


def blocks(r: Results) -> Reading:
    one, two, whole = r["2 blocks, 1 worker"], r["2 blocks, 2 workers"], r["FWSS"]
    first = two["seconds"][0]
    before = [rmse for t, rmse in zip(whole["seconds"], whole["RMSE"], strict=True) if t <= first]
    early = not before or two["RMSE"][0] < before[-1]
    last = two["RMSE"][-1], whole["RMSE"][-1]
    words = f"2 blocks: {one['seconds'][-1]:.1f} s with one worker, {two['seconds'][-1]:.1f} s with two"
    words = f"{words}; after {first:.1f} s RMSE {two['RMSE'][0]:.2f} of two workers,"
    words = f"{words} {f'{before[-1]:.2f}' if before else 'none'} of FWSS; at the end {last[0]:.2f} and {last[1]:.2f}"
    return words, early and last[0] >= last[1]


# ---- HGW19 ----


def share_left(r: Results) -> Reading:
    ends = {n: r[f"left, Herding({n})"][-1] for n in (2, 4, 6, 8)}
    words = each({f"Herding({n})": v for n, v in ends.items()} | {"Gibbs": r["left, Gibbs"][-1]})
    return words, ends[2] > ends[4] > ends[8] and ends[8] < r["left, Gibbs"][-1]


def share_right(r: Results) -> Reading:
    at = r["lengths"].index(32)
    first = {name: r[f"right, {name}"][at] for name in ("DHG, B=1", "DHG, B=16", "DHG, B=64", "Gibbs")}
    return f"after 32 sweeps: {each(first)}", first["DHG, B=1"] < first["DHG, B=16"] < first["Gibbs"]


def fig3(r: Results) -> Reading:
    words = [
        f"{k}: D^cor {g(v['cor'][-1])}, estimate {g(v['estimate'])}, slope of D^herding {v['slope of herding']:.2f}"
        for k, v in r.items()
    ]
    slopes = [-1.15 < v["slope of herding"] < -0.85 for v in r.values()]
    return "; ".join(words), all(slopes) and all(0.7 < v["cor"][-1] / v["estimate"] < 1.5 for v in r.values())


def fig4(r: Results) -> Reading:
    cells = {b: {k: r[f"B={b}"][k][-1] for k in ("herding", "approx", "cor")} for b in (4, 16, 64, 256)}
    words = "; ".join(f"B={b}: {each(c)}" for b, c in cells.items())
    rising = {k: np.diff([c[k] for c in cells.values()]) for k in ("herding", "approx", "cor")}
    fine = (rising["herding"] > 0).all() and (rising["approx"] < 0).all() and (rising["cor"] < 0).all()
    return words, bool(fine)


def fig6(r: Results) -> Reading:
    """Check the fit over the paper's range of bins; the description also covers larger numbers of bins."""
    pairs = [(b, d) for b, d in zip(r["bins"], r["threshold"], strict=True) if 4 <= b <= 16]
    bins, logs = np.array([b for b, _ in pairs], float), np.log([d for _, d in pairs])
    (rate, fit), (power, other) = _line(bins, logs), _line(np.log(bins), logs)
    words = f"D^cor {g(pairs[0][1])} at B = 4, {g(pairs[-1][1])} at 16, {g(r['threshold'][-1])} at {r['bins'][-1]}"
    return f"{words}; from 4 to 16 e^({rate:.2f} B) (R^2 {fit:.2f}) or B^{power:.2f} ({other:.2f})", fit > other


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of a line through the points, and its R^2."""
    return float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1] ** 2)


def fig8(r: Results) -> Reading:
    gibbs = np.array(r["Gibbs"]["all"])
    below = {name: int((np.array(r[name]["all"]) < gibbs).sum()) for name in ("DHG(16)", "RDHG(16)")}
    ends = {name: r[name]["all"][-1] for name in ("RDHG(16)", "DHG(16)", "Gibbs")}
    words = f"D^all: {each(ends)}; below Gibbs at {below['DHG(16)']} (DHG) and {below['RDHG(16)']} (RDHG) of"
    fine = ends["RDHG(16)"] < ends["DHG(16)"] and 0 < below["DHG(16)"] < below["RDHG(16)"]
    return f"{words} {len(gibbs)} lengths", fine


def weights19(r: Results) -> Reading:
    words = "; ".join(f"{k} {', '.join(g(x) for x in r[k][::2])}" for k in ("0", "random", "Gibbs"))
    zero, random, gibbs = (r[k][0] for k in ("0", "random", "Gibbs"))
    shown = ", ".join(map(str, r["lengths"][::2]))
    fine = zero > 2 * random and abs(random / gibbs - 1) < 0.25
    return f"mean bias of the marginals after {shown} sweeps, by weights: {words}", fine


def by_plan(part: str, order: list[str]) -> Reader:
    def found(r: Results) -> Reading:
        ends = {name: r[name][part][-1] for name in order}
        return f"D^{part}: {each(ends)}", list(ends.values()) == sorted(ends.values())

    return found


def table1(r: Results) -> Reading:
    words = [f"{k}: by samples {g(v['total'])}, exact {g(v['exact total'])}" for k, v in r.items()]
    close = all(0.7 < v["total"] / v["exact total"] < 1.4 for v in r.values())
    return "; ".join(words), close and r["0 to 1"]["total"] > r["-1 to 1"]["total"]


def fig9_19(r: Results) -> Reading:
    methods = ("Gibbs", "Gibbs, RB", "RDHG(64)", "RDHG(64), RB")
    found = {span: {m: r[f"{span}, {m}"][-1] for m in methods} for span in ("0 to 0.5", "0 to 0.1")}
    words = "; ".join(f"{span}: {each(c)}" for span, c in found.items())
    return words, all(c["RDHG(64)"] < c["Gibbs, RB"] < c["Gibbs"] for c in found.values())


def fig11_19(r: Results) -> Reading:
    ends = {name: r[name]["mean"][-1] for name in r["order"]}
    return ", ".join(f"{k} {v:.4f}" for k, v in ends.items()), list(ends.values()) == sorted(ends.values())


def authors(r: Results) -> Reading:
    last = {name: rows[-1] for name, rows in r["rows"].items()}
    words = "; ".join(f"{n}: {g(v['ours']['all'])} / {g(v['theirs']['all'])}" for n, v in last.items())
    far = f"{r['far']} of {r['compared']} columns more than 3 standard errors of 10 runs apart"
    return f"D^all after {r['lengths'][-1]} sweeps, ours / theirs: {words}; {far}", r["far"] <= 0.05 * r["compared"]


def authors_means(r: Results) -> Reading:
    """Compare the means, except those of the authors' file of 32 bins (papers.toml states the reason)."""
    found, rows = r["means"], r["means"]["rows"]
    labels = {name: row["labels"] for name, row in rows.items()}
    words = "; ".join(f"{name}: {g(one['ours'][-1])} / {g(one['theirs'][-1])}" for name, one in labels.items())
    others = [one for name, row in rows.items() if "DHG(32)" not in name for one in row.values()]
    apart = [abs(x) > 3 for one in others for x in one["standard errors apart"]]
    details = f"{sum(apart)} of {len(apart)} more than 3 standard errors apart, DHG(32) aside ({found['far']} with it)"
    return f"after {found['lengths'][-1]} sweeps, ours / theirs: {words}; {details}", sum(apart) <= 0.05 * len(apart)


def authors_table(r: Results) -> Reading:
    pairs = {name: (r["estimates"][name], value) for name, value in r["table1"].items()}
    words = ", ".join(f"{name}: {a:.3g} for {b:.3g}" for name, (a, b) in pairs.items())
    return words, all(abs(a / b - 1) < 0.02 for a, b in pairs.values())


def bounds19(r: Results) -> Reading:
    return f"{r['cases']} graphs, plans and functions, {r['below']} bounds below the error", not r["below"]


def partitions19(r: Results) -> Reading:
    t, words, fine = r["partitions"], [], []
    for n in (4, 16):
        own, width, other = (t[f"{name}, B={n}"] for name in ("dhg", "equal width", "equal probability"))
        words.append(
            f"B={n}: D^all {g(own['all'][-1])} (dhg), {g(width['all'][-1])} (equal width), {g(other['all'][-1])} (equal"
            f" probability); D^approx {g(own['approx'][-1])}, {g(width['approx'][-1])}, {g(other['approx'][-1])};"
            f" D^herding of equal probability ~ T^{other['slope of herding']:.2f}"
        )
        fine.append(abs(width["all"][-1] / own["all"][-1] - 1) < 0.25 and other["slope of herding"] < -0.85)
    return "; ".join(words), all(fine)


def error_bounds19(r: Results) -> Reading:
    words, chosen, fine = [], [], []
    for one in r["c"]:
        c = np.inf if one["chosen"] is None else one["chosen"]
        error = one["errors"][r["candidates"].index(c)] if c in r["candidates"] else np.inf
        best = r["candidates"][int(np.argmin(one["errors"]))]
        words.append(
            f"T = {one['sweeps']}: c = {g(c)}, error {g(error)}; least {g(min(one['errors']))} with c = {g(best)}"
        )
        chosen.append(c)
        fine.append(error <= 2 * min(one["errors"]))
    return "; ".join(words), all(fine) and chosen == sorted(chosen)


def bin_numbers19(r: Results) -> Reading:
    words = [f"T = {one['sweeps']}: {g(one['sum'])} with B = {one['B']}, least {g(min(one['sums']))}" for one in r["B"]]
    return "; ".join(words), all(one["sum"] <= 2 * min(one["sums"]) for one in r["B"])


def labels19(r: Results) -> Reading:
    rows = {name: found for name, found in r.items() if name != "lengths"}
    names = [f"4 labels, {plan}" for plan in ("HG", "DHG(4)", "RDHG(4)", "complete HG")]
    shown = [f"{name}: cor {g(r[name]['cor'][-1])}, all {g(r[name]['all'][-1])}" for name in names]
    slopes = [f["slope of herding"] for name, f in rows.items() if "Gibbs" not in name and "complete" not in name]
    no_bias = all(f["cor"][-1] < 1e-9 for name, f in rows.items() if "complete" in name)
    above = sum(f["above"] for f in rows.values())
    falls = f"D^herding ~ T^{min(slopes):.2f} to T^{max(slopes):.2f}"
    words = f"{'; '.join(shown)}; {falls}; D^all above the sum {above} times"
    return words, no_bias and above == 0 and max(slopes) < -0.85


def load() -> tuple[dict[str, str], list[Item]]:
    """Return the commands, and the items in the order of the page.

    Raises:
        KeyError: papers.toml names a function that this module does not have.
    """
    tables = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
    items = []
    for table in tables["item"]:
        name, arguments = table.pop("reading", None), table.pop("with", ())
        function: Any = None if name is None else globals()[name]
        reading = function(*arguments) if arguments else function
        items.append(Item(**{"experiment": table.get("command", "")} | table, reading=reading))
    return tables["commands"], items


def verdicts(experiment: str, results: Results) -> Iterator[str]:
    """Yield a line with the verdict of each item of an experiment; items without results are skipped."""
    for item in load()[1]:
        if item.experiment == experiment and item.reading is not None:
            with suppress(KeyError, IndexError):
                words, holds = item.reading(results)
                yield f"{item.name}: {words}; {item.judge(holds)} (the paper: {item.paper})"
