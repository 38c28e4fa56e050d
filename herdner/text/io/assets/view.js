// HTML files: highlights the mentions of a name, draws links between them, and shows a tip about the selected mention.
// The file contains curve.js before this script, so that it needs no other file.

const RESTING = 150; // maximum number of links of a document that are always visible

const tip = document.getElementById("tip");
let pinned = null; // the mention whose tip has buttons

/** Makes an element with a class and text. Texts never become markup. */
function make(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

/** Returns all mentions of the name of a mention, in the order of the text. */
function mentions(mark) {
  return [...mark.closest(".text").querySelectorAll(`[data-name="${CSS.escape(mark.dataset.name)}"]`)];
}

// --- links

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting && !entry.target.svg) drawResting(entry.target);
});
const resized = new ResizeObserver((entries) => entries.forEach((entry) => placeLinks(entry.target)));
document.querySelectorAll(".text").forEach((text) => observer.observe(text));

/** Draws the links of a document, unless it has too many. */
function drawResting(text) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "links");
  svg.setAttribute("aria-hidden", "true");
  text.svg = svg;
  text.links = [];
  text.prepend(svg);
  const last = new Map();
  const pairs = [];
  for (const mark of text.querySelectorAll(".entity")) {
    if (last.has(mark.dataset.name)) pairs.push([last.get(mark.dataset.name), mark]);
    last.set(mark.dataset.name, mark);
  }
  if (pairs.length > RESTING) return;
  text.links = pairs.map(([a, b]) => addLink(svg, a, b));
  placeLinks(text);
  resized.observe(text);
}

function addLink(svg, a, b) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const colour = [...a.classList].find((each) => /^c\d$/.test(each));
  path.setAttribute("class", `link ${colour}`);
  svg.append(path);
  return { path, a, b };
}

/** Moves the curves to the current positions of the mentions. */
function placeLinks(text, links = text.links) {
  const origin = text.svg.getBoundingClientRect();
  const shapes = links.map(({ a, b }) => curve(a.getClientRects()[0], b.getClientRects()[0], origin));
  links.forEach(({ path }, i) => path.setAttribute("d", shapes[i]));
}

// --- the selected mention

/** Highlights a mention, the other mentions of its name and their links, and shows its tip; null removes all of them. */
function show(mark, withButtons = false) {
  for (const text of document.querySelectorAll(".looking")) {
    text.classList.remove("looking");
    for (const each of text.querySelectorAll(".here, .kin, .shown")) each.classList.remove("here", "kin", "shown");
    for (const each of text.querySelectorAll(".passing")) each.remove();
  }
  tip.hidden = true;
  pinned = withButtons ? mark : null;
  if (!mark) return;
  const text = mark.closest(".text");
  const same = mentions(mark);
  text.classList.add("looking");
  for (const each of same) each.classList.add("kin");
  mark.classList.add("here");
  if (!text.svg) drawResting(text);
  if (text.links.length) {
    for (const link of text.links) if (link.a.dataset.name === mark.dataset.name) link.path.classList.add("shown");
  } else {
    const passing = same.slice(1).map((each, i) => addLink(text.svg, same[i], each));
    for (const { path } of passing) path.classList.add("shown", "passing");
    placeLinks(text, passing);
  }
  fillTip(mark, same, withButtons);
  placeTip(mark.getClientRects()[0]);
}

function fillTip(mark, same, withButtons) {
  const colour = [...mark.classList].find((each) => /^c\d$/.test(each));
  const head = make("div");
  const words = make("strong", "", mark.textContent);
  words.dir = "auto";
  head.append(words, make("span", `chip ${colour}`, mark.dataset.label));
  const parts = [head];
  if (mark.dataset.confidence) {
    const meter = make("div", `meter ${colour}`);
    meter.style.setProperty("--confidence", mark.style.getPropertyValue("--confidence"));
    meter.append(make("span"));
    parts.push(make("p", "", `confidence ${mark.dataset.confidence}`), meter);
  }
  const index = same.indexOf(mark);
  if (same.length > 1) parts.push(make("p", "", `mention ${index + 1} of ${same.length} of this name`));
  if (withButtons && same.length > 1) parts.push(stepButtons(same, index));
  tip.replaceChildren(...parts);
  tip.classList.toggle("pinned", withButtons);
}

function stepButtons(same, index) {
  const buttons = make("p", "steps");
  for (const [text, step] of [["‹ previous", -1], ["next ›", 1]]) {
    const button = make("button", "", text);
    button.type = "button";
    button.addEventListener("click", (event) => {
      event.stopPropagation(); // the tip has new buttons when the click reaches the page
      const other = same[(index + step + same.length) % same.length];
      other.scrollIntoView({ block: "center" });
      show(other, true);
      tip.querySelectorAll("button")[step > 0 ? 1 : 0].focus({ preventScroll: true });
    });
    buttons.append(button);
  }
  return buttons;
}

/** Places the tip below a rectangle of the window, or above it if there is no space. */
function placeTip(rectangle) {
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(rectangle.left, 8), document.documentElement.clientWidth - width - 8);
  const below = rectangle.bottom + 8;
  const top = below + height < window.innerHeight ? below : Math.max(rectangle.top - height - 8, 4);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${top + window.scrollY}px`;
}

const markOf = (event) => event.target.closest?.(".entity");
document.addEventListener("pointerover", (event) => {
  if (pinned || event.pointerType !== "mouse") return;
  show(markOf(event) ?? null);
});
document.addEventListener("click", (event) => {
  const mark = markOf(event);
  if (mark) event.preventDefault();
  if (mark || !tip.contains(event.target)) show(mark ?? null, Boolean(mark));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  pinned?.focus({ preventScroll: true });
  show(null);
});
