// Shows names as coloured marks, differences between columns, and a tooltip for the selected name.
import { drawLinks, placeLinks, linkAt } from "./links.js";
import { make, makeTable } from "./make.js";

const MAX_TOOLTIP_LINKS = 6;
const RESTING = 150; // maximum number of links that are always visible; otherwise only those of the selected name

export const percent = (value) => `${(100 * value).toFixed(value > 0.9995 || value < 0.1 ? 2 : 1)} %`;
export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const same = (a, b) => a.start === b.start && a.end === b.end && a.label === b.label;

/** Returns a function that converts offsets in code points, as the service counts, to offsets in UTF-16 units. */
function units(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (i) => i;
  const starts = [0];
  for (const character of text) starts.push(starts.at(-1) + character.length);
  return (i) => starts[i];
}

/** Returns the places where columns have different names: {start, end, of: the names of each column}. */
export function differences(columns) {
  if (columns.length < 2) return [];
  const all = columns.flatMap((column, i) => column.result.entities.map((entity) => ({ entity, i })));
  all.sort((a, b) => a.entity.start - b.entity.start || a.entity.end - b.entity.end);
  const places = [];
  for (const { entity, i } of all) {
    let place = places.at(-1);
    if (!place || entity.start >= place.end) {
      place = { start: entity.start, end: entity.end, of: columns.map(() => []) };
      places.push(place);
    }
    place.end = Math.max(place.end, entity.end);
    place.of[i].push(entity);
  }
  const agrees = (place) => place.of.every((own) => own.length === place.of[0].length && own.every((each, k) => same(each, place.of[0][k])));
  return places.filter((place) => !agrees(place));
}

/** Draws the columns and the table of differences. */
export function draw(columns, places, labels) {
  const colour = (label) => `c${(PREFERRED[label] ?? labels.indexOf(label) + 3) % 8}`;
  columns.forEach((column, i) => drawColumn(column, i, places, colour));
  drawTable(columns, places, colour);
  columns.forEach((column) => drawLinks(column, RESTING));
  current = columns;
}

const PREFERRED = { PER: 0, PERSON: 0, LOC: 1, GPE: 1, LOCATION: 1, ORG: 2, ORGANIZATION: 2, MISC: 3 };
let current = [];

function drawColumn(column, i, places, colour) {
  const { entities } = column.result;
  const at = units(column.source);
  const piece = (start, end) => column.source.slice(at(start), at(end));
  column.marks = [];
  column.colour = colour;
  const parts = [];
  const ghosts = places.filter((place) => !place.of[i].length).map((place) => ({ ...place, ghost: true }));
  const differing = new Set(places.flatMap((place) => place.of[i]));
  let end = 0;
  for (const span of [...entities, ...ghosts].sort((a, b) => a.start - b.start)) {
    parts.push(document.createTextNode(piece(end, span.start)));
    const mark = span.ghost ? ghost(piece(span.start, span.end)) : entityMark(span, colour, differing.has(span));
    mark.span = span;
    mark.column = column;
    if (!span.ghost) column.marks.push(mark);
    parts.push(mark);
    end = span.end;
  }
  parts.push(document.createTextNode(column.source.slice(at(end))));
  const words = make("div", "words");
  words.dir = "auto";
  words.append(...parts);
  column.words = words;
  column.text.replaceChildren(words);
  const tally = new Map();
  for (const entity of entities) tally.set(entity.label, (tally.get(entity.label) || 0) + 1);
  column.counts.replaceChildren(...[...tally].sort().map(([label, n]) => make("span", `chip ${colour(label)}`, `${label} ${n}`)));
  column.text.onpointermove = (event) => look(event, column);
  column.text.onpointerleave = () => show(null);
}

function entityMark(entity, colour, differs) {
  const mark = make("span", `entity ${colour(entity.label)}${differs ? " differs" : ""}`, entity.text);
  mark.dataset.label = entity.label;
  mark.style.setProperty("--confidence", entity.confidence ?? 0);
  mark.tabIndex = 0;
  mark.setAttribute("role", "button");
  const confidence = entity.confidence === null ? "" : `, confidence ${percent(entity.confidence)}`;
  mark.setAttribute("aria-label", `${entity.text}, ${entity.label}${confidence}${differs ? ", differs between backends" : ""}`);
  mark.setAttribute("aria-describedby", "tip");
  mark.addEventListener("focus", () => show(mark));
  mark.addEventListener("blur", () => show(null));
  mark.addEventListener("keydown", (event) => event.key === "Escape" && show(null));
  return mark;
}

function ghost(text) {
  const mark = make("span", "ghost", text);
  mark.title = "another backend found a name here";
  return mark;
}

// --- the selected name or link

let shown = null;

function look(event, column) {
  const mark = event.target.closest?.(".entity");
  if (mark) {
    if (mark !== shown) show(mark);
    return;
  }
  const link = linkAt(column, event.clientX, event.clientY);
  if (link) showLink(link, event);
  else if (shown) show(document.activeElement?.classList.contains("entity") ? document.activeElement : null);
}

/** Highlights a name and its links, and shows its tooltip; null removes the highlight and the tooltip. */
export function show(mark) {
  for (const column of current) {
    column.text.classList.remove("looking");
    for (const each of column.text.querySelectorAll(".here, .linked, .kin, .shown")) each.classList.remove("here", "linked", "kin", "shown");
  }
  const tip = document.getElementById("tip");
  tip.hidden = true;
  shown = mark;
  if (!mark) return;
  for (const column of current) {
    const { start, end } = mark.span;
    for (const other of column.marks) if (other.span.start < end && start < other.span.end) highlight(column, other);
  }
  fillTip(tip, mark);
  place(tip, mark.getClientRects()[0]);
}

function highlight(column, mark) {
  column.text.classList.add("looking");
  mark.classList.add("here");
  for (const kin of mentions(mark)) if (kin !== mark) kin.classList.add("kin");
  for (const link of column.links) {
    if (link.a !== mark && link.b !== mark) continue;
    placeLinks(column, [link]);
    link.path.classList.add("shown");
    for (const end of [link.a, link.b]) if (end !== mark) end.classList?.add("linked");
  }
}

/** Returns the marks of all mentions of the name, in the order of the text. */
export function mentions(mark) {
  const { name_id: id } = mark.span;
  return id === null || id === undefined ? [mark] : mark.column.marks.filter((other) => other.span.name_id === id);
}

function fillTip(tip, mark) {
  const { span, column } = mark;
  const head = make("div");
  head.append(isolated("strong", span.text), make("span", `chip ${column.colour(span.label)}`, span.label));
  const parts = [head];
  if (span.confidence !== null) {
    const meter = make("div", `meter ${column.colour(span.label)}`);
    meter.style.setProperty("--confidence", span.confidence);
    meter.append(make("span"));
    parts.push(make("p", "", `confidence ${percent(span.confidence)}`), meter);
  }
  const same = mentions(mark);
  if (same.length > 1) parts.push(make("p", "", `mention ${same.indexOf(mark) + 1} of ${same.length} of this name`));
  const links = column.links.filter((link) => link.a === mark || link.b === mark);
  const list = make("ul");
  for (const link of links.slice(0, MAX_TOOLTIP_LINKS)) {
    const item = make("li");
    const [text, label] = link.a === mark ? [link.textB, link.labelB] : [link.textA, link.labelA];
    item.append(make("span", "", `${text} ${label}`), make("span", "", `${link.rule} ${signed(link.logPotential)}`));
    list.append(item);
  }
  if (links.length) parts.push(make("p", "", `linked to ${links.length === 1 ? "one mention" : `${links.length} mentions`}`), list);
  else if (column.result.linked) parts.push(make("p", "", "linked to no other mention"));
  if (links.length > MAX_TOOLTIP_LINKS) parts.push(make("p", "", `and ${links.length - MAX_TOOLTIP_LINKS} more`));
  tip.replaceChildren(...parts);
}

/** Makes an element with words of the text, in their own writing direction. */
function isolated(name, text) {
  const made = make(name, "", text);
  made.dir = "auto";
  return made;
}

function showLink(link, event) {
  show(null);
  shown = link;
  const { column } = link;
  column.text.classList.add("looking");
  link.path.classList.add("shown");
  for (const end of [link.a, link.b]) end.classList?.add("linked");
  const tip = document.getElementById("tip");
  const head = make("div");
  head.append(make("strong", "", `${link.textA} – ${link.textB}`));
  const effect = link.logPotential < 0 ? "contradicts these labels" : "supports these labels";
  tip.replaceChildren(head, make("p", "", `${link.rule}: log-potential ${signed(link.logPotential)}, ${effect}`));
  place(tip, new DOMRect(event.clientX, event.clientY - 8, 0, 16));
}

/** Places the tooltip below a rectangle of the window, or above it if there is no space. */
function place(tip, rectangle) {
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(rectangle.left, 8), document.documentElement.clientWidth - width - 8);
  const below = rectangle.bottom + 8;
  const top = below + height < window.innerHeight ? below : Math.max(rectangle.top - height - 8, 4);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${top + window.scrollY}px`;
}

// --- the table of differences

function drawTable(columns, places, colour) {
  const section = document.getElementById("differences");
  section.hidden = !places.length;
  if (!places.length) return;
  section.querySelector("h2").textContent = `Differences (${places.length})`;
  const table = makeTable("text", ...columns.map((column) => column.name));
  const body = table.createTBody();
  const at = units(columns[0].source);
  for (const each of places) {
    const row = body.insertRow();
    row.insertCell().append(jump(each, columns, columns[0].source.slice(at(each.start), at(each.end))));
    for (const own of each.of) {
      const cell = row.insertCell();
      if (!own.length) cell.append(make("span", "none", "—"));
      for (const entity of own) cell.append(isolated("bdi", entity.text), make("span", `chip ${colour(entity.label)}`, entity.label), " ");
    }
  }
  section.querySelector(".scroll").replaceChildren(table);
}

function jump(place, columns, text) {
  const button = isolated("button", text);
  button.className = "jump";
  button.type = "button";
  button.title = "show in the text";
  button.addEventListener("click", () => {
    const marks = columns.flatMap((column) => [...column.words.querySelectorAll(".entity, .ghost")]);
    const there = marks.filter((mark) => mark.span.start < place.end && place.start < mark.span.end);
    there[0]?.scrollIntoView({ block: "center", behavior: "smooth" });
    there.forEach(flash);
  });
  return button;
}

function flash(mark) {
  mark.classList.add("flash");
  setTimeout(() => mark.classList.remove("flash"), 1600);
}

/** Scrolls to a mark and makes it flash. */
export function reveal(mark) {
  mark.scrollIntoView({ block: "center", behavior: "smooth" });
  flash(mark);
}
