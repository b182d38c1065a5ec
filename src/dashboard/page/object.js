// One object: its metadata as cached now, and the changes seen of it.
import { element, setClock, time, wallClock } from "./dom.js";

const panel = document.getElementById("object");
let shown = null;

export async function open(change) {
  shown = { reflector: change.reflector, namespace: change.namespace ?? "", name: change.name };
  await load();
}

export function close() {
  shown = null;
  panel.hidden = true;
}

/** Loads again if the object on show is among what changed. */
export function changed(changes) {
  const isShown = (change) => shown && change.reflector === shown.reflector && change.name === shown.name && (change.namespace ?? "") === shown.namespace;
  if (changes.some(isShown)) load();
}

async function load() {
  const asked = shown;
  const answer = await fetch(`objects?${new URLSearchParams(asked)}`).catch(() => null);
  if (asked !== shown) return;
  const found = answer ? await read(answer) : { error: "the server does not answer" };
  if (asked !== shown) return;
  if (found.now !== undefined) setClock(found.now);
  panel.replaceChildren(...(found.error ? [heading(asked.name), element("p", {}, found.error)] : content(found)));
  panel.hidden = false;
}

/** What was found, or why nothing: a refusal is a sentence, not JSON. */
async function read(answer) {
  const text = await answer.text().catch(() => "the answer broke off");
  try {
    return JSON.parse(text);
  } catch {
    return { error: text.trim() || `the server answers ${answer.status}` };
  }
}

function heading(name, kind = "") {
  return element("div", { class: "bar" }, element("h2", {}, element("span", { class: "faint" }, `${kind} `), name),
    element("button", { type: "button", onclick: close, "aria-label": "Close the object" }, "close"));
}

function content({ kind, apiVersion, namespace, name, metadata, history }) {
  const key = namespace ? `${namespace}/${name}` : name;
  const facts = metadata
    ? [["apiVersion", apiVersion], ["uid", metadata.uid], ["resourceVersion", metadata.resourceVersion], ["generation", metadata.generation],
       ["created", metadata.creationTimestamp], ["deletion asked for", metadata.deletionTimestamp],
       ["owners", metadata.owners?.join(", ")], ["finalizers", metadata.finalizers?.join(", ")]]
    : [["apiVersion", apiVersion], ["state", "not in the cache any more"]];
  return [
    heading(key, kind),
    element("dl", { class: "facts" }, facts.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, String(value))])),
    pairs("labels", metadata?.labels), pairs("annotations", metadata?.annotations),
    element("h3", {}, `changes seen (${history.length})`),
    element("ol", { class: "history" }, [...history].reverse().map((change) => element("li", { "data-type": change.type },
      element("time", { title: wallClock(change.at).toISOString() }, time(change.at)), element("span", { class: "type" }, change.type.toLowerCase()),
      element("span", { class: "faint version" }, `→ ${change.resourceVersion}`), element("span", { class: "what" }, [change.what, change.cause === "Watch" ? "" : change.cause].filter(Boolean).join(" · "))))),
  ].filter(Boolean);
}

function pairs(title, values) {
  const entries = Object.entries(values ?? {});
  if (!entries.length) return null;
  return element("div", {}, element("h3", {}, title), element("ul", { class: "pairs" }, entries.map(([name, value]) => element("li", {}, element("span", { class: "faint" }, `${name}=`), value))));
}
