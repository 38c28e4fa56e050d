/** Makes an element with a class and text. Texts never become markup. */
export function make(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

/** Makes a table with column headings. */
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
