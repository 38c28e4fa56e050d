// Opening of text files, and saving of results.

/** Returns the text of a file; throws an Error with a message for users if it is too large or not a text. */
export async function readText(file, most) {
  if (file.size > 4 * most) throw new Error(`${file.name} is too large: the limit of this server is ${most.toLocaleString("en")} characters.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (String.fromCharCode(...bytes.subarray(0, 5)) === "%PDF-") throw new Error(`${file.name} is a PDF: extract its text first, for example by pdftotext.`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // not UTF-8: the error below is thrown
  }
  throw new Error(`${file.name} is not a text in UTF-8. Save it in UTF-8, or use herdner tag --encoding.`);
}

/** Saves a text with its names as a file. */
export async function save(text, entities, format) {
  const body = JSON.stringify({ text, entities: entities.map(({ start, end, label, confidence, name_id }) => ({ start, end, label, confidence, name_id })), format });
  const response = await fetch("/api/file", { method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" }, body });
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail || `The server returned status ${response.status}.`);
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "herdner.txt";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
