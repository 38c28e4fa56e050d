// Files: a text that is opened, and what was found in it as a file in any format.

/** The text of a file; an Error, fit to be shown, where it is too large or no text. */
export async function readText(file, most) {
  if (file.size > 4 * most) throw new Error(`${file.name} is too large: this server takes texts of at most ${most.toLocaleString("en")} characters.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (String.fromCharCode(...bytes.subarray(0, 5)) === "%PDF-") throw new Error(`${file.name} is a PDF: extract its text first, as with pdftotext.`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // told below
  }
  throw new Error(`${file.name} is no text in UTF-8. Save it as one, or use herdner tag --encoding.`);
}

/** Has the browser keep a text with its names as a file. */
export async function save(text, entities, format) {
  const body = JSON.stringify({ text, entities: entities.map(({ start, end, label, confidence }) => ({ start, end, label, confidence })), format });
  const response = await fetch("/api/file", { method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" }, body });
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail || `The server answered ${response.status}.`);
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "herdner.txt";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
