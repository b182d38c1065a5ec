// The supervision tree: reflectors, their actors, their subscribers.
import { element, drawing, write, mark, refill, since, time, duration, count } from "./dom.js";

const OPEN_AT_ONCE = 4;
const cards = new Map();
const host = document.getElementById("tree");
const queue = host.appendChild(element("div", { class: "pending-list" }));

/** What is to be reflected and is not yet: a line with its reason each. */
function waiting(pending) {
  refill(queue, JSON.stringify(pending), () => pending.map(({ name, reason }) =>
    element("div", { class: "reflector", "data-health": "poor", "data-pending": name },
      element("div", { class: "title" }, element("span", { class: "lamp poor" }, "waiting"), element("h2", {}, name)),
      element("div", { class: "condition" }, element("p", { class: "what" }, reason)))));
}

export function show(reflectors, pending) {
  waiting(pending);
  const ids = new Set(reflectors.map((one) => one.id));
  for (const [id, card] of cards) {
    if (ids.has(id)) continue;
    card.root.remove();
    cards.delete(id);
  }
  host.querySelector(".empty").hidden = reflectors.length + pending.length > 0;
  for (const reflector of reflectors) {
    if (!cards.has(reflector.id)) {
      cards.set(reflector.id, newCard(reflector));
      // Of many, those that are well are told in two lines.
      cards.get(reflector.id).root.open = reflectors.length <= OPEN_AT_ONCE || ["poor", "bad"].includes(reflector.health);
      host.append(cards.get(reflector.id).root);
    }
    update(cards.get(reflector.id), reflector);
  }
}

/** Moves countdowns on. */
export function tick() {
  for (const node of host.querySelectorAll("[data-until]")) {
    const left = -since(Number(node.dataset.until));
    write(node, left > 0 ? `in ${duration(left)}` : "now");
  }
  for (const node of host.querySelectorAll("[data-since]")) write(node, duration(since(Number(node.dataset.since))));
}

export function focus(index) {
  const card = [...cards.values()][index];
  if (card) card.root.querySelector("summary").focus();
}

function newCard(reflector) {
  const part = (name, tag = "span", attributes = {}) => element(tag, { class: name, ...attributes });
  const parts = {
    lamp: part("lamp"), phase: part("phase"), wait: part("wait"), objects: part("objects"),
    rate: part("rate"), freshness: part("freshness"), queue: part("queue"), version: part("version"),
    condition: part("condition", "div"), alarm: part("alarm", "div", { role: "alert" }), lasting: part("faint", "p"), actors: part("rows", "div"),
    requests: part("requests", "div"), subscribers: part("rows", "div"), notes: part("notes", "div"),
    line: drawing("path", { class: "line" }), area: drawing("path", { class: "area" }),
  };
  // What is read out at once does not hold what changes every moment.
  parts.condition.append(parts.alarm, parts.lasting);
  const spark = drawing("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img", "aria-label": "changes per second, the last minute" }, parts.area, parts.line);
  const { namespace, labels, fields } = reflector.selection;
  const called = reflector.name === reflector.resource ? null : reflector.name;
  const scope = [called, namespace && `in ${namespace}`, labels, fields].filter(Boolean).join(" · ");
  const figure = (label, node) => element("div", { class: "figure" }, element("span", { class: "label" }, label), node);
  const root = element("details", { class: "reflector", "data-resource": reflector.resource },
    element("summary", {},
      element("div", { class: "title" }, parts.lamp, element("h2", {}, reflector.resource), element("span", { class: "scope" }, scope), parts.phase, parts.wait),
      element("div", { class: "figures" },
        figure("objects", parts.objects), figure("freshness", parts.freshness), figure("version", parts.version),
        figure("queue", parts.queue), figure("changes/s", parts.rate), spark)),
    parts.condition,
    element("div", { class: "branches" },
      element("div", {}, element("h3", {}, "actors"), parts.actors, parts.requests),
      element("div", {}, element("h3", {}, "subscribers"), parts.subscribers)),
    parts.notes);
  return { root, parts, samples: null };
}

function update(card, reflector) {
  const { root, parts } = card;
  mark(root, "data-health", reflector.health);
  mark(root, "data-phase", reflector.phase);
  parts.lamp.className = `lamp ${reflector.health}`;
  write(parts.lamp, { good: "healthy", busy: "getting ready", poor: "in trouble", bad: "needs help" }[reflector.health]);
  write(parts.phase, reflector.phase);
  countdown(parts.wait, reflector.nextAttempt);
  write(parts.objects, count(reflector.objects));
  write(parts.queue, count(reflector.queue));
  write(parts.version, reflector.resourceVersion ?? "–");
  freshness(parts.freshness, reflector.freshness);
  sparkline(card, reflector);
  condition(parts, reflector.condition);
  refill(parts.actors, JSON.stringify([reflector.actors, reflector.phase]), () => [...reflector.actors].reverse().flatMap((one) => actor(one, reflector)));
  refill(parts.requests, JSON.stringify(reflector.requests), () => requests(reflector.requests));
  refill(parts.subscribers, JSON.stringify(reflector.subscribers), () =>
    reflector.subscribers.length ? reflector.subscribers.map(subscriber) : element("p", { class: "faint" }, "nobody subscribed"));
  refill(parts.notes, JSON.stringify([reflector.quarantined, reflector.oddities, reflector.audits]), () => notes(reflector));
}

function countdown(node, until) {
  if (until === null || until === undefined) {
    node.removeAttribute("data-until");
    write(node, "");
  } else mark(node, "data-until", String(until));
}

function freshness(node, { state, since: from, reason }) {
  node.className = `freshness ${{ fresh: "good", stale: "poor" }[state] ?? "busy"}`;
  if (state === "stale") {
    node.title = reason;
    refill(node, `stale ${from}`, () => ["stale ", element("span", { "data-since": from })]);
  } else {
    node.removeAttribute("title");
    refill(node, state, () => [state]);
  }
}

// A reflector that nobody records has no rates of the server's; then they are told from its totals.
function rates(card, reflector) {
  if (reflector.rates) return reflector.rates;
  const now = Date.now();
  const before = card.samples ?? { rates: Array(60).fill(0), total: reflector.changes.total, at: now };
  const rates = [...before.rates];
  if (now - before.at > 500) {
    rates.push(Math.round((1000 * (reflector.changes.total - before.total)) / (now - before.at)));
    rates.shift();
    card.samples = { rates, total: reflector.changes.total, at: now };
  } else card.samples ??= before;
  return rates;
}

function sparkline(card, reflector) {
  const values = rates(card, reflector);
  const most = Math.max(4, ...values);
  const points = values.map((value, at) => `${((at * 120) / (values.length - 1)).toFixed(1)} ${(23 - (21 * value) / most).toFixed(1)}`);
  mark(card.parts.line, "d", `M${points.join("L")}`);
  mark(card.parts.area, "d", `M0 24L${points.join("L")}L120 24Z`);
  const last = values.slice(-6, -1);
  const mean = last.reduce((sum, value) => sum + value, 0) / last.length;
  write(card.parts.rate, mean >= 10 ? Math.round(mean) : mean.toFixed(1));
}

function condition({ condition, alarm, lasting }, told) {
  condition.hidden = !told;
  if (!told) return refill(alarm, "", () => []);
  refill(alarm, JSON.stringify([told.message, told.advice]), () => [
    element("p", { class: "what" }, told.message),
    element("p", { class: "advice" }, element("b", {}, "what to do "), told.advice),
  ]);
  refill(lasting, JSON.stringify([told.since, told.attempts]), () => [
    "for ", element("span", { "data-since": told.since }), ` · tried ${told.attempts === 1 ? "once" : `${told.attempts} times`}`,
  ]);
}

// The supervisor's children come and go; what it does tells which of them is there.
const CHILDREN = { listing: "lister", "streaming list": "watcher", "opening watch": "watcher", watching: "watcher", discovering: "discovery" };

function actor(one, reflector) {
  const rows = [actorRow(one)];
  if (one.name === "supervisor" && CHILDREN[reflector.phase] && one.state === "running") {
    rows.push(element("div", { class: "row child" }, element("span", { class: "lamp good" }, ""), element("span", { class: "name" }, `└ ${CHILDREN[reflector.phase]}`), element("span", { class: "state" }, reflector.phase)));
  }
  return rows;
}

function actorRow(one) {
  const health = { running: "good", "backing off": "poor" }[one.state] ?? "bad";
  const wait = one.until === null ? null : element("span", { class: "wait", "data-until": one.until });
  const restarts = one.restarts
    ? element("details", { class: "restarts", "data-name": one.name },
        element("summary", {}, several(one.restarts, "restart", "restarts")),
        [...one.lastRestarts].reverse().map((restart) => element("p", {}, element("time", {}, time(restart.at)), ` ${restart.reason} `, element("span", { class: "faint" }, restart.delay ? `after ${duration(restart.delay)}` : "at once"))))
    : element("span", { class: "faint" }, "no restarts");
  return element("div", { class: "row", "data-actor": one.name },
    element("span", { class: `lamp ${health}` }, ""), element("span", { class: "name" }, one.name.replaceAll("_", " ")),
    element("span", { class: "state" }, one.state, " ", wait), restarts);
}

function several(number, one, more) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

function requests({ lists, watches, failures, lastFailures }) {
  const text = `${several(lists, "list", "lists")} · ${several(watches, "watch", "watches")} · `;
  if (!failures) return element("p", { class: "faint" }, `${text}none failed`);
  return element("details", { class: "failures", "data-name": "failures" },
    element("summary", {}, text, element("b", {}, `${count(failures)} failed`)),
    [...lastFailures].reverse().map((failure) => element("p", {}, element("time", {}, time(failure.at)), ` ${failure.verb}: ${failure.error}`)));
}

function subscriber(one) {
  const policy = one.atMost === null ? one.policy : `every one ≤ ${count(one.atMost)}`;
  const health = !one.synced ? "busy" : one.pending > 100 ? "poor" : "good";
  return element("div", { class: "row", "data-subscriber": one.id },
    element("span", { class: `lamp ${health}` }, ""), element("span", { class: "name" }, one.name ?? `subscriber ${one.id}`),
    element("span", { class: "policy", title: one.atMost === null ? "one per object, always joined" : "in order until so many wait, then joined per object" }, policy),
    element("span", { class: one.pending ? "lag" : "lag faint" }, `${count(one.pending)} behind`),
    element("span", { class: "faint told" }, `${one.coalesced ? `${count(one.coalesced)} joined · ` : ""}${count(one.delivered)} told`));
}

const ODDITIES = { lateEvents: "late events", lateBookmarks: "late bookmarks", resurrections: "resurrections", olderLists: "older lists", rewinds: "rewinds", unknownEvents: "unknown events" };

function notes({ quarantined, oddities, audits }) {
  const lines = [];
  const odd = Object.entries(ODDITIES).filter(([name]) => oddities[name]).map(([name, words]) => `${count(oddities[name])} ${words}`);
  if (odd.length) lines.push(element("p", {}, element("b", {}, "odd "), odd.join(" · ")));
  if (audits.done + audits.skipped) lines.push(element("p", {}, element("b", {}, "audits "), `${audits.done} done · ${audits.skipped} skipped · ${audits.differences} differences`, audits.lastFound.map((found) => element("span", { class: "block" }, found))));
  const kept = quarantined.objects.length + quarantined.others;
  if (kept) lines.push(element("details", { "data-name": "quarantined" }, element("summary", {}, `${count(kept)} quarantined`), quarantined.objects.map(({ object, reason }) => element("p", {}, `${object}: ${reason}`)), quarantined.lastOther ? element("p", {}, quarantined.lastOther) : null));
  return lines;
}
