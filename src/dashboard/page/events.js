// The stream of events: the newest few hundred, filtered, until paused.
import { element, write, time, count } from "./dom.js";

const KEPT = 500;
const byId = (id) => document.getElementById(id);
const rows = byId("rows");

let kept = [];
let missed = 0;
let waiting = [];
let paused = false;
let chosen = null;
let open = () => {};

export function start(onOpen) {
  open = onOpen;
  byId("text").addEventListener("input", draw);
  byId("resource").addEventListener("change", draw);
  byId("pause").addEventListener("click", pause);
  for (const button of document.querySelectorAll(".types button")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      draw();
    });
  }
  rows.addEventListener("click", (event) => {
    const row = event.target.closest(".event");
    if (row) choose(row, true);
  });
  rows.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && chosen) choose(chosenRow(), true);
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else return;
    event.preventDefault();
  });
}

/** The kinds one can choose from. */
export function offer(reflectors) {
  const names = [...new Set(reflectors.map((one) => one.resource))].sort();
  const select = byId("resource");
  if (select.dataset.names === names.join()) return;
  select.dataset.names = names.join();
  const value = select.value;
  select.replaceChildren(element("option", { value: "" }, "all kinds"), ...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(value) ? value : "";
}

export function add(news) {
  missed += news.missed;
  if (paused) {
    waiting = [...waiting, ...news.changes].slice(-KEPT);
    counts();
    return;
  }
  kept = [...kept, ...news.changes].slice(-KEPT);
  const matching = matcher();
  const fresh = news.changes.filter(matching).map((change) => row(change, "new")).reverse();
  rows.prepend(...fresh);
  while (rows.childElementCount > KEPT) rows.lastElementChild.remove();
  counts();
}

export function pause() {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  write(byId("pause"), paused ? "go on" : "pause");
  if (!paused) {
    kept = [...kept, ...waiting].slice(-KEPT);
    waiting = [];
    draw();
  } else counts();
}

export function clear() {
  byId("text").value = "";
  draw();
}

/** Goes to the next or previous event, wherever the reader was. */
export function move(step) {
  rows.focus({ preventScroll: true });
  const all = [...rows.children];
  const at = all.indexOf(chosenRow());
  const next = all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))];
  if (next) choose(next, false);
}

function chosenRow() {
  return rows.querySelector(`[data-number="${chosen}"]`);
}

function choose(next, isOpened) {
  if (!next) return;
  chosenRow()?.setAttribute("aria-selected", "false");
  chosen = next.dataset.number;
  next.setAttribute("aria-selected", "true");
  rows.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
  const change = kept.find((one) => String(one.number) === chosen);
  if (isOpened && change?.name) open(change);
}

function matcher() {
  const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const resource = byId("resource").value;
  const types = new Set([...document.querySelectorAll(".types [aria-pressed=true]")].map((button) => button.dataset.type));
  return (change) => {
    if (resource && change.resource !== resource) return false;
    if (change.type !== "SYNCED" && !types.has(change.type)) return false;
    const text = `${change.resource} ${change.namespace ?? ""}/${change.name ?? ""} ${change.cause} ${change.what} ${change.resourceVersion} ${change.type}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function draw() {
  const matching = kept.filter(matcher());
  rows.replaceChildren(...matching.map((change) => row(change)).reverse());
  counts();
}

function counts() {
  const shown = rows.childElementCount;
  const parts = [shown === kept.length ? `${count(shown)} events` : `${count(shown)} of ${count(kept.length)} events`];
  if (missed) parts.push(`${count(missed)} came too fast to be shown`);
  if (paused) parts.push(`paused, ${count(waiting.length)} since`);
  write(byId("counts"), parts.join(" · "));
}

function row(change, extra = "") {
  const number = String(change.number);
  const namespace = change.namespace ? element("span", { class: "faint" }, `${change.namespace}/`) : null;
  return element("div", { class: `event ${extra}`, id: `event-${number}`, role: "option", "data-number": number, "data-type": change.type, "data-resource": change.resource, "aria-selected": String(number === chosen) },
    element("time", {}, time(change.at)), element("span", { class: "type" }, change.type.toLowerCase()),
    element("span", { class: "kind" }, change.resource ?? ""), element("span", { class: "key" }, namespace, change.name ?? ""),
    element("span", { class: "what" }, [change.what, change.cause === "Watch" ? "" : change.cause].filter(Boolean).join(" · ")));
}
