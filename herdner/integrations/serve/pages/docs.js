// The description of the service, /openapi.json, as a page: no script from elsewhere, so that it works off line.
import { make, makeTable } from "./make.js";

/** The name of a schema that a reference means. */
const nameOf = (reference) => reference.split("/").at(-1);

/** A type in words. */
function typeOf(schema) {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.allOf) return schema.allOf.map(typeOf).join(" and ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const low = schema.minimum ?? (schema.exclusiveMinimum === undefined ? undefined : `above ${schema.exclusiveMinimum}`);
  const bounds = low === undefined && schema.maximum === undefined ? "" : ` (${low ?? ""} to ${schema.maximum ?? "∞"})`;
  return (schema.type ?? "anything") + bounds;
}

function fieldsOf(schema) {
  const table = makeTable("field", "type", "meaning");
  const body = table.createTBody();
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const row = body.insertRow();
    row.insertCell().append(make("code", "", name));
    row.insertCell().append(typeOf(field));
    const needed = field.default === undefined ? "" : ` Default: ${JSON.stringify(field.default)}.`;
    row.insertCell().append((field.description ?? "") + (schema.asked ? needed : ""));
  }
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.append(table);
  return scroll;
}

/** The schemas that one refers to, itself first. */
function reached(name, schemas, found = new Set()) {
  if (found.has(name) || !schemas[name]) return found;
  found.add(name);
  for (const [, other] of JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g)) reached(other, schemas, found);
  return found;
}

function schemaParts(name, schemas, asked) {
  return [...reached(name, schemas)].flatMap((each) => [
    make("h4", "", each),
    make("div", "", schemas[each].description ?? ""),
    fieldsOf({ ...schemas[each], asked }),
  ]);
}

function operation(path, method, entry, schemas) {
  const section = make("section", "card");
  const title = make("h2");
  title.append(make("code", "", `${method.toUpperCase()} ${path}`), entry.summary ?? "");
  section.append(title, make("p", "", entry.description ?? ""));
  const asked = entry.requestBody?.content["application/json"].schema.$ref;
  if (asked) {
    const example = schemas[nameOf(asked)].examples?.at(-1) ?? {};
    const body = JSON.stringify(example, null, 2).replaceAll("'", "'\\''");
    section.append(make("h3", "", "For example"));
    const command = make("pre", "", `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${body}'`);
    command.tabIndex = 0;
    section.append(command);
    section.append(make("h3", "", "What is sent"), ...schemaParts(nameOf(asked), schemas, true));
  }
  const answered = entry.responses["200"]?.content?.["application/json"]?.schema ?? {};
  const answers = [answered, ...(answered.anyOf ?? [])].filter((each) => each.$ref);
  if (answers.length) section.append(make("h3", "", "What comes back"), ...answers.flatMap((each) => schemaParts(nameOf(each.$ref), schemas, false)));
  const problems = Object.entries(entry.responses).filter(([status]) => status >= "400");
  if (problems.length) {
    section.append(make("h3", "", 'When it fails: {"detail": "…"}'));
    const table = make("table");
    for (const [status, response] of problems) {
      const row = table.insertRow();
      row.insertCell().append(make("code", "", status));
      row.insertCell().append(response.description);
    }
    section.append(table);
  }
  return section;
}

const status = document.getElementById("status");
// Swagger UI is there where its package is.
fetch("/try", { method: "HEAD", credentials: "omit" }).then((answer) => (document.getElementById("try").hidden = !answer.ok));
try {
  const description = await (await fetch("/openapi.json", { credentials: "omit" })).json();
  const schemas = description.components.schemas;
  const sections = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, entry]) => operation(path, method, entry, schemas)),
  );
  status.textContent = description.info.description;
  document.getElementById("docs").append(...sections.reverse());
} catch {
  status.textContent = "The server does not answer. Is herdner serve still running?";
}
