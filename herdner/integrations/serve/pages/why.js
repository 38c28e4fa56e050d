// Dialog with an explanation of a label: the terms of its log-odds.
import { make, makeTable } from "./make.js";
import { mentions, percent, reveal, show, signed } from "./view.js";

const MAX_PARTS = 12; // number of parts that are visible at first
const dialog = document.getElementById("why");
const against = document.getElementById("against");
let selected = null;
let runs = 0;

/** Opens the dialog for a name; `ask` sends a request to the service. */
export function why(mark, ask, labels) {
  const { span, column } = mark;
  selected = { mark, ask };
  const others = labels.filter((label) => label !== span.label);
  const choices = [["", "no name"], ["best", "the best other label"], ...others.map((label) => [label, label])];
  against.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
  const title = document.getElementById("why-title");
  title.replaceChildren(`Why is “${span.text}” `, make("span", `chip ${column.colour(span.label)}`, span.label), " ?");
  fillMentions(mark, (other) => {
    dialog.close();
    reveal(other);
    why(other, ask, labels);
  });
  show(null);
  dialog.showModal();
  fill();
}

/** Shows the number of the mention among the mentions of its name, with buttons that go to the previous and the next mention. */
function fillMentions(mark, go) {
  const place = document.getElementById("mentions");
  const same = mentions(mark);
  const index = same.indexOf(mark);
  place.hidden = same.length < 2;
  const step = (text, by) => {
    const button = make("button", "jump", text);
    button.type = "button";
    button.addEventListener("click", () => go(same[(index + by + same.length) % same.length]));
    return button;
  };
  place.replaceChildren(step("← previous", -1), ` mention ${index + 1} of ${same.length} of this name `, step("next →", 1));
}

async function fill() {
  const { mark, ask } = selected;
  const { span, column } = mark;
  const run = ++runs;
  const place = document.getElementById("parts");
  place.setAttribute("aria-busy", "true");
  const { text, seed } = column.request;
  const request = { text, seed, start: span.start, end: span.end, backend: column.choice };
  if (against.value) request.against = against.value;
  let parts;
  try {
    parts = explanation(await ask("/api/explain", request));
  } catch (error) {
    parts = [make("p", "problem", error.message)];
  }
  if (run !== runs) return; // another request has been sent meanwhile
  place.replaceChildren(...parts);
  place.removeAttribute("aria-busy");
}

function explanation(result) {
  const { feature, network, transition, link, name } = result.totals;
  const other = result.against ?? "no name";
  const odds = make("p", "odds", `log-odds ${number(result.log_odds)} against ${other}: `);
  const ofNetwork = network === 0 ? "" : `network ${number(network)}, `;
  odds.append(`features ${number(feature)}, ${ofNetwork}transitions ${number(transition)}, links ${number(link)}`);
  if (name !== 0) odds.append(`, known names ${number(name)}`);
  const steps = result.confidence_steps.map((step) => `${step.name} ${number(step.log_odds)} (${percent(step.probability)})`);
  const confidence = make("p", "", `confidence ${percent(result.confidence)} in steps of log-odds: ${steps.join(", ")}`);
  const table = makeTable("log-odds", "size", "part");
  const body = table.createTBody();
  const largest = Math.max(...result.parts.map((part) => Math.abs(part.value ?? 0)), 0.01);
  const fillRows = (parts) => body.replaceChildren(...parts.map((part) => row(part, largest)));
  const few = result.parts.length > MAX_PARTS + 1 ? [...result.parts.slice(0, MAX_PARTS), rest(result.parts.slice(MAX_PARTS))] : result.parts;
  fillRows(few);
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.append(table);
  if (few === result.parts) return [odds, confidence, scroll];
  const all = make("button", "jump", `show all ${result.parts.length} parts`);
  all.type = "button";
  all.addEventListener("click", () => {
    fillRows(result.parts);
    all.remove();
  });
  return [odds, confidence, scroll, all];
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
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // a click outside
