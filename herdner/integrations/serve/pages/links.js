// Draws links between mentions as curves behind the text.
import { curve } from "./curve.js";

const SVG = "http://www.w3.org/2000/svg";

/** Draws the links of a column that end at a name. If there are more than `resting`, only those of the selected name are visible. */
export function drawLinks(column, resting) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "links");
  svg.setAttribute("aria-hidden", "true");
  column.svg = svg;
  column.links = joinLinks(column);
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

/** Merges links between tokens into links between names: all links of one rule between two names become one link, whose log-potential is their sum. */
function joinLinks(column) {
  const owner = new Map();
  for (const mark of column.marks) for (let i = mark.span.start; i < mark.span.end; i++) owner.set(i, mark);
  const joined = new Map();
  const characters = [...column.source];
  for (const link of column.result.links) {
    const [a, b] = [owner.get(link.earlier.start), owner.get(link.later.start)];
    if ((!a && !b) || a === b) continue;
    const key = `${a ? a.span.start : link.earlier.start}:${b ? b.span.start : link.later.start}:${link.rule}`;
    const existing = joined.get(key);
    if (existing) {
      existing.logPotential += link.log_potential;
      continue;
    }
    const text = (span) => characters.slice(span.start, span.end).join("");
    joined.set(key, {
      column, a: a ?? link.earlier, b: b ?? link.later, rule: link.rule, logPotential: link.log_potential,
      textA: a ? a.span.text : text(link.earlier), textB: b ? b.span.text : text(link.later),
      labelA: a ? a.span.label : "(no name)", labelB: b ? b.span.label : "(no name)",
    });
  }
  return [...joined.values()];
}

/** Moves the curves to the current positions of the names. */
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

/** Returns the rectangle of a token that is not part of a name. */
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

/** Returns the link at a point of the window, or null. */
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
