/** An element with a class and text; what a user or the service wrote only ever becomes text. */
export function make(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

/** A table with these words at the head of its columns. */
export function makeTable(...names) {
  const table = make("table");
  const head = table.createTHead().insertRow();
  for (const name of names) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  return table;
}
