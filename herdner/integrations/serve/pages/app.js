// The page: sends requests to the service and shows a column for each backend.
import { readText, save } from "./file.js";
import { make } from "./make.js";
import { differences, draw, show } from "./view.js";
import { why } from "./why.js";

const $ = (id) => document.getElementById(id);
const state = { about: null, run: 0, columns: [] };

/** Returns the JSON of a response; throws an Error with a message for users. */
async function ask(path, body) {
  let response;
  try {
    const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    response = await fetch(path, { credentials: "omit", ...(body === undefined ? {} : post) });
  } catch {
    throw new Error("The server does not respond. Check that herdner serve is running.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail || `The server returned status ${response.status}.`);
  return answer;
}

const number = (value) => value.toLocaleString("en");
const plural = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

function addPills(about) {
  for (const backend of about.backends) {
    const pill = make("label", "pill");
    const box = make("input");
    box.type = "checkbox";
    box.name = "backend";
    box.value = backend.name;
    box.checked = about.default_backends.includes(backend.name);
    pill.title = backend.summary;
    pill.append(box, make("span", "", backend.name));
    $("backends").append(pill);
  }
}

/** Counts characters as the service does, in code points. */
function characters(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g) || []).length;
}

function count() {
  const most = state.about?.limits.characters ?? Infinity;
  const n = characters($("text").value);
  $("count").textContent = n > most ? `${number(n)} characters; the limit is ${number(most)}` : plural(n, "character");
  $("count").classList.toggle("over-limit", n > most);
}

/** Returns the integer in a field, or undefined if it is empty; throws an Error if it is not an integer. */
function integer(id, what) {
  const field = $(id);
  if (field.validity.badInput || !field.validity.valid) {
    field.focus();
    throw new Error(`${what} must be an integer from ${number(+field.min)} to ${number(+field.max)}.`);
  }
  return field.value === "" ? undefined : Number(field.value);
}

/** Returns a request for each selected backend; throws an Error if the text or the backends are missing. */
function requests() {
  const text = $("text").value.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
  const checked = [...document.querySelectorAll("input[name=backend]:checked")].map((box) => box.value);
  // Only the default backend, unless backends are compared.
  const names = $("compare").open ? checked : [state.about.default_backends[0]];
  if (!text.trim()) throw new Error("Type or paste a text first.");
  if (!names.length) throw new Error("Select at least one backend.");
  const sweeps = integer("sweeps", "Sweeps");
  const seed = integer("seed", "Seed") ?? 0;
  return names.map((name) => {
    const backend = state.about.backends.find((each) => each.name === name);
    const links = $("links").checked && backend.links;
    const options = sweeps !== undefined && backend.options.includes("n_sweeps") ? { n_sweeps: sweeps } : {};
    return { text, seed, backends: [{ backend: name, options, links }] };
  });
}

function newColumn(request, i) {
  const [choice] = request.backends;
  const card = make("article", "card column waiting");
  const header = make("header");
  const title = make("h2", "", choice.backend);
  title.id = `column-${i}`;
  card.setAttribute("aria-labelledby", title.id);
  const facts = make("span", "facts", "working …");
  const counts = make("span", "counts");
  const text = make("div", "text", request.text);
  text.dir = "auto";
  header.append(title, facts, counts);
  card.append(header, text);
  return { name: choice.backend, request, choice, card, facts, counts, text, source: request.text, answer: null, result: null };
}

function fail(column, error) {
  column.card.classList.remove("waiting");
  column.facts.textContent = "";
  const problem = make("p", "problem", error.message);
  problem.setAttribute("role", "alert");
  column.text.replaceWith(problem);
}

function fill(column, answer) {
  [column.answer] = answer.results;
  column.card.classList.remove("waiting");
  updateFacts(column);
}

/** Filters the names of a column by confidence, and shows the number of visible names. */
function updateFacts(column) {
  const least = Number($("least").value) / 100;
  const result = { ...column.answer, entities: column.answer.entities.filter(({ confidence }) => confidence === null || confidence >= least) };
  column.result = result;
  const names = result.entities.length ? plural(result.entities.length, "name") : "no names found";
  const links = result.linked ? plural(result.links.length, "link") : "no links";
  const milliseconds = result.seconds * 1000;
  column.facts.textContent = `${names} · ${links} · ${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
}

async function tag() {
  const run = ++state.run;
  let pending;
  try {
    pending = requests();
  } catch (error) {
    $("status").textContent = error.message;
    return;
  }
  $("tag").setAttribute("aria-busy", "true");
  $("status").textContent = "Tagging …";
  $("differences").hidden = true;
  $("tools").hidden = true;
  state.columns = pending.map(newColumn);
  show(null);
  $("results").replaceChildren(...state.columns.map((column) => column.card));
  let next = 0;
  const worker = async () => {
    while (next < pending.length && run === state.run) {
      const i = next++;
      try {
        const answer = await ask("/api/tag", pending[i]);
        if (run === state.run) fill(state.columns[i], answer);
      } catch (error) {
        if (run === state.run) fail(state.columns[i], error);
      }
    }
  };
  await Promise.all(Array.from({ length: state.about.limits.workers }, worker));
  if (run === state.run) finish();
}

/** Compares the columns when all have their results. */
function finish() {
  $("tag").removeAttribute("aria-busy");
  $("tools").hidden = !state.columns.some((column) => column.result);
  const done = state.columns.filter((column) => column.result);
  const places = differences(done);
  draw(done, places, state.about.labels);
  const failed = state.columns.length - done.length;
  const parts = failed ? [`${plural(failed, "backend")} could not tag this text.`] : [];
  if (done.length > 1) parts.push(places.length ? `The backends differ at ${plural(places.length, "place")}.` : "All backends agree.");
  if (done.some((column) => column.result.entities.length)) parts.push("Point at a name, or select it by Tab, to see its confidence and its links. Click it, or press Enter, to see an explanation.");
  else if (done.length) parts.push("No names found.");
  $("status").textContent = parts.join(" ");
}

/** Shows the same results with another minimum confidence. */
function refilter() {
  $("least-value").textContent = `${$("least").value} %`;
  if ($("tag").hasAttribute("aria-busy")) return;
  show(null);
  for (const column of state.columns) if (column.answer) updateFacts(column);
  finish();
}

async function open(file) {
  try {
    $("text").value = await readText(file, state.about.limits.characters);
  } catch (error) {
    $("status").textContent = error.message;
    return;
  }
  count();
  tag();
}

/** Saves the visible names of the first backend. */
async function download() {
  const column = state.columns.find((each) => each.result);
  try {
    await save(column.source, column.result.entities, $("format").value);
    $("status").textContent = `Saved the names of ${column.name} as ${$("format").value}.`;
  } catch (error) {
    $("status").textContent = error.message;
  }
}

/** Explains the label of the selected name; returns whether the target is a name. */
function explain(target) {
  const mark = target.closest(".entity");
  if (mark) why(mark, ask, state.about.labels);
  return mark !== null;
}

async function begin() {
  $("text").addEventListener("input", count);
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (state.about) tag();
  });
  $("file").addEventListener("change", () => {
    const [file] = $("file").files;
    if (state.about && file) open(file).then(() => ($("file").value = ""));
  });
  $("text").addEventListener("dragover", (event) => event.preventDefault());
  $("text").addEventListener("drop", (event) => {
    if (!state.about || !event.dataTransfer.files[0]) return;
    event.preventDefault();
    open(event.dataTransfer.files[0]);
  });
  $("compare").addEventListener("toggle", () => state.about && tag());
  $("least").addEventListener("input", refilter);
  $("save").addEventListener("click", download);
  $("results").addEventListener("click", (event) => explain(event.target));
  $("results").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (explain(event.target)) event.preventDefault();
  });
  try {
    state.about = await ask("/api/about");
  } catch (error) {
    $("status").textContent = error.message;
    return;
  }
  $("model").textContent = `model ${state.about.model}`;
  addPills(state.about);
  for (const format of state.about.formats) $("format").append(new Option(format, format, format === "jsonl", format === "jsonl"));
  count();
  tag();
}

begin();
