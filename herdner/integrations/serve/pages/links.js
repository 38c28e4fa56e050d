// Links between mentions: curves behind the text, from name to name.

const SVG = "http://www.w3.org/2000/svg";

/** The links of a column that touch a name, and an SVG to draw them in; of more than `resting`, none is shown at rest. */
export function drawLinks(column, resting) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "links");
  svg.setAttribute("aria-hidden", "true");
  column.svg = svg;
  column.links = gathered(column);
  column.resting = column.links.length <= resting;
  for (const link of column.links) {
    link.path = document.createElementNS(SVG, "path");
    const agree = link.labelA === link.labelB;
    link.path.setAttribute("class", `link${agree ? ` ${column.colour(link.labelA)}` : " against"}`);
    link.path.style.setProperty("--width", `${Math.min(1 + Math.abs(link.logPotential) * 0.7, 3.2).toFixed(2)}px`);
    link.path.dataset.rule = link.rule;
    svg.append(link.path);
  }
  column.text.prepend(svg);
  if (column.resting) {
    placeLinks(column, column.links);
    column.observer = new ResizeObserver(() => column.svg.isConnected && placeLinks(column, column.links));
    column.observer.observe(column.text);
  }
}

/** Links between words as links between names: those of one pair of names by one rule are one, their parts added up. */
function gathered(column) {
  const owner = new Map();
  for (const mark of column.marks) for (let i = mark.span.start; i < mark.span.end; i++) owner.set(i, mark);
  const found = new Map();
  const characters = [...column.source];
  for (const link of column.result.links) {
    const [a, b] = [owner.get(link.earlier.start), owner.get(link.later.start)];
    if ((!a && !b) || a === b) continue;
    const key = `${a ? a.span.start : link.earlier.start}:${b ? b.span.start : link.later.start}:${link.rule}`;
    const known = found.get(key);
    if (known) {
      known.logPotential += link.log_potential;
      continue;
    }
    const text = (span) => characters.slice(span.start, span.end).join("");
    found.set(key, {
      column, a: a ?? link.earlier, b: b ?? link.later, rule: link.rule, logPotential: link.log_potential,
      textA: a ? a.span.text : text(link.earlier), textB: b ? b.span.text : text(link.later),
      labelA: a ? a.span.label : "(no name)", labelB: b ? b.span.label : "(no name)",
    });
  }
  return [...found.values()];
}

/** All names that are linked to one, by any number of steps. */
export function component(column, mark) {
  const reached = new Set([mark]);
  const waiting = [mark];
  if (!column.mates) {
    column.mates = new Map();
    for (const { a, b } of column.links) {
      if (!(a instanceof Element && b instanceof Element)) continue;
      column.mates.set(a, [...(column.mates.get(a) || []), b]);
      column.mates.set(b, [...(column.mates.get(b) || []), a]);
    }
  }
  while (waiting.length) {
    for (const mate of column.mates.get(waiting.pop()) || []) {
      if (reached.has(mate)) continue;
      reached.add(mate);
      waiting.push(mate);
    }
  }
  reached.delete(mark);
  return reached;
}

/** Lays the curves where the names are now. */
export function placeLinks(column, links) {
  const origin = column.svg.getBoundingClientRect();
  const boxes = new Map();
  const box = (end) => {
    if (!boxes.has(end)) boxes.set(end, end instanceof Element ? end.getClientRects()[0] : wordBox(column, end));
    return boxes.get(end);
  };
  const shapes = links.map((link) => curve(box(link.a), box(link.b), origin));
  links.forEach((link, i) => link.path.setAttribute("d", shapes[i]));
}

/** A curve from name to name: an arch over a line of text, or an S from below one to above another. */
function curve(a, b, origin) {
  if (!a || !b) return "";
  const x1 = a.left + a.width / 2 - origin.left;
  const x2 = b.left + b.width / 2 - origin.left;
  const top1 = a.top - origin.top;
  const top2 = b.top - origin.top;
  const f = (value) => value.toFixed(1);
  if (Math.abs(top1 - top2) < a.height / 2) {
    const height = Math.min(9 + Math.abs(x2 - x1) * 0.06, 26);
    return `M${f(x1)} ${f(top1)}C${f(x1)} ${f(top1 - height)} ${f(x2)} ${f(top2 - height)} ${f(x2)} ${f(top2)}`;
  }
  const bottom = a.bottom - origin.top;
  const distance = top2 - bottom;
  const pull = Math.max(distance * 0.42, 5);
  // Names one below the other would hide a straight line behind what stands between them.
  const bow = Math.abs(x2 - x1) < 60 ? Math.min(18 + distance * 0.12, 60) * (x1 < origin.width / 2 ? 1 : -1) : 0;
  return `M${f(x1)} ${f(bottom)}C${f(x1 + bow)} ${f(bottom + pull)} ${f(x2 + bow)} ${f(top2 - pull)} ${f(x2)} ${f(top2)}`;
}

/** Where a word is that is no name. */
function wordBox(column, span) {
  const range = document.createRange();
  const walker = document.createTreeWalker(column.words, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = [...node.data].length;
    if (span.start < seen + length) {
      const before = [...node.data].slice(0, span.start - seen).join("").length;
      range.setStart(node, before);
      range.setEnd(node, Math.min(before + 1, node.data.length));
      return range.getClientRects()[0];
    }
    seen += length;
  }
  return null;
}

/** The link that is drawn at a point of the window, if any. */
export function linkAt(column, x, y) {
  if (!column.resting) return null;
  const origin = column.svg.getBoundingClientRect();
  const point = new DOMPoint(x - origin.left, y - origin.top);
  const near = (link) => {
    link.path.style.strokeWidth = "9px";
    const hit = link.path.isPointInStroke(point);
    link.path.style.strokeWidth = "";
    return hit;
  };
  return column.links.find(near) || null;
}
