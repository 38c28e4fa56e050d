"""Readings of the results of the papers' scripts; papers.toml assigns them to items.

A table ``[[item]]`` of papers.toml has these keys:

* ``of``: the paper, a key of PAPERS.
* ``name``: the tables or figures.
* ``paper``: the result of the paper.
* ``command``: a key of ``[commands]``; omitted if no script covers the item.
* ``reading``: a function of this module. It maps the results of the script (with the arguments ``with``, if set) to a
  description and to whether they agree with the paper.
* ``experiment``: the experiment whose results are read, if its name differs from the command's.
* ``why``: what the paper does not specify, or why the results depart.
* ``verdict``: the verdict if nothing is run.
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
Reading = tuple[str, bool]
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


HEAD = """# The papers, item by item

This page lists every table and figure of the five papers that herdner implements: the result of the paper, the result
of herdner, and whether both results agree. The command `python scripts/papers/all.py` writes this page.

* The columns "here" and "agrees" are computed from the results of the command, by the conditions in
  `papers_items.py`. A condition tests the order of methods or the law that the paper states. It tests digits only
  if the item names them.
* Items without a command are tested by the tests of the functions that they name.
* Commands run in the folder `scripts/papers`. Names in braces are folders of pictures and texts.
* Numbers marked (quick) have the small sizes of `--quick`, which show the order of the methods but not the last
  digits. The others have the paper's sizes, or the sizes that the item names.
* If "agrees" means less than the claim of the paper, the item says so.

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


def g(value: float) -> str:
    return f"{value:.3g}"


def each(found: Mapping[str, float]) -> str:
    """Format names with their numbers."""
    return ", ".join(f"{name} {g(value)}" for name, value in found.items())


# ---- HG13, HG16 ----


EPSILONS = (0.1, 0.01, 0.001, 0.0001)


def fig5(r: Results) -> Reading:
    ends = {m: [r[f"eps={e}, {m}"]["median"][1][-1] for e in EPSILONS] for m in ("Gibbs", "herded Gibbs")}
    words = "; ".join(f"{m} {', '.join(map(g, values))}" for m, values in ends.items())
    ahead = [b < a for a, b in zip(ends["Gibbs"], ends["herded Gibbs"], strict=True)]
    return f"L1 error for eps .1, .01, .001, .0001: {words}", all(ahead)


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
    words = [f"{m} {'/'.join(f'{1000 * cell[0]:.0f}' for cell in cells)}" for m, cells in r["table"].items()]
    return "x 1000, sigma 2/4/6/8: " + ", ".join(words), all(
        sorted(r["table"], key=lambda m, k=k: r["table"][m][k][0])
        == sorted(r["printed"], key=lambda m, k=k: r["printed"][m][k])
        for k in range(4)
    )


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
    return "after 30 sweeps, x 1000: " + ", ".join(f"{m} {1000 * v:.0f}" for m, v in ends.items()), (
        ends["HG"] < ends["Gibbs"] and ends["HG-shared"] < ends["Gibbs"]
    )


def fig11(r: Results) -> Reading:
    alike = [line for line in r["differences"] if line.startswith(("annealed", "herded"))]
    changes = {line.split(":")[0]: sum(part.strip()[0] in "+-" for part in line.split(",")[1:]) for line in alike}
    words = ", ".join(f"{name}: {n} names added or missing" for name, n in changes.items())
    return f"compared with Viterbi, {words}", max(changes.values()) <= 2


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


def ratios(r: Results) -> Reading:
    found = [one["systematic_over_dogs"] for one in r["replicates"]]
    return f"DoGS {', '.join(f'{x:.0f}' for x in found)} times below systematic at the last budget", min(found) > 20


def dogs2(r: Results) -> Reading:
    n, t, side = r["n_steps"], r["seconds_a_sample"], r["side"]
    words = f"{side} x {side}: {n['DoGS']} updates in place of {n['systematic']:,}; {g(t['DoGS'])} s a sample in place"
    return f"{words} of {g(t['systematic'])}", n["DoGS"] < n["systematic"] / 1000


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
        return words, held["DoGS"][-1] < held["systematic"][-1] and means["DoGS"] < means["systematic"]

    return found


def dogs7(r: Results) -> Reading:
    error, scan, apart = r["errors"], next(iter(r["scans"].values())), r["DoGS - systematic"]
    a, b, c = (error[m]["mean"] for m in ("DoGS", "systematic", "PLSA"))
    words = f"error DoGS {a:.3f}, systematic {b:.3f}, PLSA {c:.3f}; DoGS - systematic {apart['mean']:.4f} (s.e."
    words = f"{words} {apart['se']:.4f}, {apart['pictures']} pictures); {scan['updates']} of {scan['of']} updates"
    level = apart["mean"] < 2 * apart["se"]
    return words, level and max(a, b) < c and 4 * scan["updates"] < scan["of"]


def dogs8(r: Results) -> Reading:
    dogs, systematic = (
        {f: _mean_bias(one["bias"][scan]) for f, one in r["factors"].items()} for scan in ("DoGS", "systematic")
    )
    worst = min(systematic.values())
    return f"mean bias by factor: {each(dogs)}; systematic {g(worst)}", max(dogs.values()) < worst


def _mean_bias(found: Results) -> float:
    """Return the mean absolute bias over budgets."""
    return sum(abs(b) for b in found["bias"]) / len(found["bias"])


# ---- FWSS18 ----


def toy(step: str) -> Reader:
    """Test whether MMD falls in the form of the claim with an exact oracle, as the theorems assume."""

    def form(t: Results) -> tuple[str, bool, float]:
        power, rate = t["exponent of N"], t["rate per particle"]
        fits = [t["R^2, exponent of N"], t["R^2, rate per particle"]]
        return f"N^{power:.2f} (R^2 {fits[0]:.3f}) or e^({rate:.3f} N) ({fits[1]:.3f})", fits[1] > fits[0], power

    def found(r: Results) -> Reading:
        (own, _, _), (exact, geometric, power) = (form(r["theory"][f"{step}{more}"]) for more in ("", ", exact oracle"))
        fine = power < -0.9 if step == "constant" else geometric
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


def accuracy(r: Results) -> Reading:
    ends = {m: f"{values[1][-1]:.4f} ({values[0][-1]:.1f} s)" for m, values in r["accuracy"].items()}
    (times, found), (until, other) = r["accuracy"]["FWSS, MAP start"], r["accuracy"]["SVGD"]
    reached = [t for t, a in zip(times, found, strict=True) if a >= other[-1]]
    when = f"FWSS reaches SVGD's final accuracy after {reached[0]:.2f} s" if reached else "FWSS never reaches it"
    return "; ".join(f"{m} {v}" for m, v in ends.items()) + f"; {when}", bool(reached) and reached[0] <= until[-1]


def falling(r: Results) -> Reading:
    ends = {m: values[1][-1] for m, values in r["mmd2"].items()}
    ours = [ends[f"FWSS, MAP start, {weights}"] for weights in ("corrected", "equal weights")]
    return "MMD^2: " + "; ".join(f"{m} {g(v)}" for m, v in ends.items()), max(ours) < ends["SVGD, mode"]


def neural(data: str, rmse: float, ll: float) -> Reader:
    def found(r: Results) -> Reading:
        (a, b, _), (c, d, _) = (np.mean(r[data][method], axis=0) for method in ("FWSS, mode", "SVGD, prior"))
        return f"FWSS RMSE {g(a)}, LL {b:.2f}; SVGD {g(c)}, {d:.2f}", a <= 1.1 * rmse and b >= ll - 0.1

    return found


def theorems18(r: Results) -> Reading:
    sizes = f"d {g(r['first']['diameter'])}, R {g(r['first']['radius'])} in the first"
    words = f"{r['above']} of {r['checks']} above the bound, on {r['problems']} problems; the last is {g(r['nearest'])}"
    return f"{words} of its bound at most; {sizes}", not r["above"]


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
    return f"MMD ~ N to the power of, in 2/3/5/10 dimensions: {words}", all(
        f["mmd2"][-1] < f["exact samples"] for f in corrected
    )


def blocks(r: Results) -> Reading:
    one, two = r["2 blocks, 1 worker"], r["2 blocks, 2 workers"]
    words = f"2 blocks: {one['seconds'][-1]:.1f} s with one worker, {two['seconds'][-1]:.1f} s with two, RMSE"
    return f"{words} {g(two['RMSE'][-1])}; whole: {g(r['FWSS']['RMSE'][-1])}", two["seconds"][-1] < one["seconds"][-1]


# ---- HGW19 ----


def share_left(r: Results) -> Reading:
    ends = {n: r[f"left, Herding({n})"][-1] for n in (2, 4, 6, 8)}
    words = each({f"Herding({n})": v for n, v in ends.items()} | {"Gibbs": r["left, Gibbs"][-1]})
    return words, ends[2] > ends[4] > ends[8]


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
    return words, cells[4]["herding"] < cells[256]["herding"] and cells[4]["approx"] > cells[64]["approx"]


def fig6(r: Results) -> Reading:
    """Test the fit over the paper's range of bins; the description also covers larger numbers."""
    pairs = [(b, d) for b, d in zip(r["bins"], r["threshold"], strict=True) if 4 <= b <= 16]
    bins, logs = np.array([b for b, _ in pairs], float), np.log([d for _, d in pairs])
    (rate, fit), (power, other) = _line(bins, logs), _line(np.log(bins), logs)
    words = f"D^cor {g(pairs[0][1])} at B = 4, {g(pairs[-1][1])} at 16, {g(r['threshold'][-1])} at {r['bins'][-1]}"
    return f"{words}; from 4 to 16 e^({rate:.2f} B) (R^2 {fit:.2f}) or B^{power:.2f} ({other:.2f})", fit > 0.85


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of a line through the points, and its R^2."""
    return float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1] ** 2)


def by_plan(part: str, order: list[str]) -> Reader:
    def found(r: Results) -> Reading:
        ends = {name: r[name][part][-1] for name in order}
        return f"D^{part}: {each(ends)}", list(ends.values()) == sorted(ends.values())

    return found


def table1(r: Results) -> Reading:
    words = [f"{k}: by samples {g(v['total'])}, exact {g(v['exact total'])}" for k, v in r.items()]
    return "; ".join(words), all(0.7 < v["total"] / v["exact total"] < 1.4 for v in r.values())


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
    """Compare the means without the authors' file of 32 bins, which papers.toml explains."""
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
    """Yield a line for each item of an experiment; items that the results do not cover are skipped."""
    for item in load()[1]:
        if item.experiment == experiment and item.reading is not None:
            with suppress(KeyError, IndexError):
                words, agrees = item.reading(results)
                yield f"{item.name}: {words}; {'agrees' if agrees else 'departs'} (the paper: {item.paper})"
