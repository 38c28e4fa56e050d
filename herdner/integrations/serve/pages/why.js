// Why a name has its label: what adds to its log-odds, behind a click on it.
import { make, makeTable } from "./make.js";
import { percent, show, signed } from "./view.js";

const MOST = 12; // parts that are shown at first
const dialog = document.getElementById("why");
const against = document.getElementById("against");
let asked = null;
let runs = 0;

/** Opens the dialog for a name; `ask` asks the service. */
export function why(mark, ask, labels) {
  const { span, column } = mark;
  asked = { mark, ask };
  const others = labels.filter((label) => label !== span.label);
  const choices = [["", "no name"], ["best", "the best other label"], ...others.map((label) => [label, label])];
  against.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
  const title = document.getElementById("why-title");
  title.replaceChildren(`Why is “${span.text}” `, make("span", `chip ${column.colour(span.label)}`, span.label), " ?");
  show(null);
  dialog.showModal();
  fill();
}

async function fill() {
  const { mark, ask } = asked;
  const { span, column } = mark;
  const run = ++runs;
  const place = document.getElementById("parts");
  place.setAttribute("aria-busy", "true");
  const { text, seed } = column.request;
  const request = { text, seed, start: span.start, end: span.end, backend: column.choice };
  if (against.value) request.against = against.value;
  let parts;
  try {
    parts = shown(await ask("/api/explain", request));
  } catch (error) {
    parts = [make("p", "problem", error.message)];
  }
  if (run !== runs) return; // something else was asked meanwhile
  place.replaceChildren(...parts);
  place.removeAttribute("aria-busy");
}

function shown(found) {
  const { feature, transition, link, name } = found.totals;
  const other = found.against ?? "no name";
  const odds = make("p", "odds", `log-odds ${number(found.log_odds)} against ${other}: `);
  odds.append(`features ${number(feature)}, transitions ${number(transition)}, links ${number(link)}`);
  if (name !== 0) odds.append(`, names given ${number(name)}`);
  const sure = make("p", "", `confidence ${percent(found.confidence)}`);
  if (found.confidence !== found.confidence_without_links) sure.append(`, without links ${percent(found.confidence_without_links)}`);
  const table = makeTable("adds", "size", "what");
  const body = table.createTBody();
  const largest = Math.max(...found.parts.map((part) => Math.abs(part.value ?? 0)), 0.01);
  const fillRows = (parts) => body.replaceChildren(...parts.map((part) => row(part, largest)));
  const few = found.parts.length > MOST + 1 ? [...found.parts.slice(0, MOST), rest(found.parts.slice(MOST))] : found.parts;
  fillRows(few);
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.append(table);
  if (few === found.parts) return [odds, sure, scroll];
  const all = make("button", "jump", `show all ${found.parts.length} parts`);
  all.type = "button";
  all.addEventListener("click", () => {
    fillRows(found.parts);
    all.remove();
  });
  return [odds, sure, scroll, all];
}

const number = (value) => (value === null ? "∞" : signed(value));

function rest(parts) {
  const words = `${parts.length} smaller ${parts.every((part) => part.kind === "feature") ? "features" : "parts"}`;
  return { kind: "rest", value: parts.reduce((sum, part) => sum + part.value, 0), words, token: "" };
}

function row(part, largest) {
  const made = make("tr", `part-${part.kind}`);
  const bar = make("span", part.value < 0 ? "size against" : "size");
  bar.style.setProperty("--size", Math.min(Math.abs(part.value ?? largest) / largest, 1));
  const cells = [make("td", "value", number(part.value)), make("td"), make("td", "", part.token ? `${part.token}: ${part.words}` : part.words)];
  cells[1].append(bar);
  made.append(...cells);
  return made;
}

against.addEventListener("change", fill);
document.getElementById("why-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
