// Shows the description of the service, /openapi.json, without scripts of other hosts, so that it works offline.
import { make, makeTable } from "./make.js";

/** Returns the name of the schema to which a reference points. */
const nameOf = (reference) => reference.split("/").at(-1);

/** Returns a description of the type of a schema. */
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
    const defaultValue = field.default === undefined ? "" : ` Default: ${JSON.stringify(field.default)}.`;
    row.insertCell().append((field.description ?? "") + (schema.isRequest ? defaultValue : ""));
  }
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.append(table);
  return scroll;
}

/** Returns the names of a schema and of all schemas to which it refers. */
function referenced(name, schemas, names = new Set()) {
  if (names.has(name) || !schemas[name]) return names;
  names.add(name);
  for (const [, other] of JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g)) referenced(other, schemas, names);
  return names;
}

function schemaParts(name, schemas, isRequest) {
  return [...referenced(name, schemas)].flatMap((each) => [
    make("h4", "", each),
    make("div", "", schemas[each].description ?? ""),
    fieldsOf({ ...schemas[each], isRequest }),
  ]);
}

function operation(path, method, entry, schemas) {
  const section = make("section", "card");
  const title = make("h2");
  title.append(make("code", "", `${method.toUpperCase()} ${path}`), entry.summary ?? "");
  section.append(title, make("p", "", entry.description ?? ""));
  const request = entry.requestBody?.content["application/json"].schema.$ref;
  if (request) {
    const example = schemas[nameOf(request)].examples?.at(-1) ?? {};
    const body = JSON.stringify(example, null, 2).replaceAll("'", "'\\''");
    section.append(make("h3", "", "Example"));
    const command = make("pre", "", `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${body}'`);
    command.tabIndex = 0;
    section.append(command);
    section.append(make("h3", "", "Request"), ...schemaParts(nameOf(request), schemas, true));
  }
  const response = entry.responses["200"]?.content?.["application/json"]?.schema ?? {};
  const responses = [response, ...(response.anyOf ?? [])].filter((each) => each.$ref);
  if (responses.length) section.append(make("h3", "", "Response"), ...responses.flatMap((each) => schemaParts(nameOf(each.$ref), schemas, false)));
  const errors = Object.entries(entry.responses).filter(([status]) => status >= "400");
  if (errors.length) {
    section.append(make("h3", "", 'Errors: {"detail": "…"}'));
    const table = make("table");
    for (const [status, response] of errors) {
      const row = table.insertRow();
      row.insertCell().append(make("code", "", status));
      row.insertCell().append(response.description);
    }
    section.append(table);
  }
  return section;
}

const status = document.getElementById("status");
// Swagger UI exists if its package is installed.
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
  status.textContent = "The server does not respond. Check that herdner serve is running.";
}
