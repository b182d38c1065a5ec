// Words the page is written in. Whatever comes from a cluster becomes text, never markup.

/** An element with attributes and children; `class` and listeners (`onclick`) included. */
export function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Writes a text only if it is another: what does not change is not laid out again. */
export function write(node, text) {
  const written = String(text);
  if (node.textContent !== written) node.textContent = written;
}

/** Sets an attribute only if it is another. */
export function mark(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Replaces the children of a node if `key` says they are others. Named details stay open, and keep the focus. */
export function refill(node, key, make) {
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  const open = new Set([...node.querySelectorAll("details[open]")].map((details) => details.dataset.name));
  const focused = node.contains(document.activeElement) ? document.activeElement.closest("details")?.dataset.name : null;
  node.replaceChildren(...[make()].flat());
  for (const details of node.querySelectorAll("details")) {
    details.open = open.has(details.dataset.name);
    if (focused && details.dataset.name === focused) details.querySelector("summary").focus();
  }
}

// The server tells times in milliseconds of its own; this is what that is here.
let offset = 0;

export function setClock(now) {
  offset = Date.now() - now;
}

export function wallClock(at) {
  return new Date(at + offset);
}

export function since(at) {
  return Date.now() - offset - at;
}

export function time(at) {
  return wallClock(at).toLocaleTimeString("en-GB", { hour12: false });
}

/** `850 ms`, `4.2 s`, `3 m 10 s`, `5 h 2 m`. */
export function duration(milliseconds) {
  const ms = Math.max(0, milliseconds);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d`;
}

export function count(number) {
  return number.toLocaleString("en-US").replaceAll(",", "\u202f");
}
