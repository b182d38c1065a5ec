// Puts the page together: one stream from the server, three parts that show it.
import { setClock, write, mark, count } from "./dom.js";
import * as tree from "./tree.js";
import * as events from "./events.js";
import * as object from "./object.js";

const byId = (id) => document.getElementById(id);

let boot = null;

function follow() {
  const stream = new EventSource("events");
  stream.addEventListener("open", () => connected("live"));
  stream.addEventListener("error", () => {
    const isRefused = stream.readyState === EventSource.CLOSED;
    connected(isRefused ? "closed" : "reconnecting");
    // A stream that was refused is not tried again by the browser.
    if (isRefused) setTimeout(follow, 5000);
  });
  stream.addEventListener("status", (message) => {
    const status = JSON.parse(message.data);
    // Another program is there now: nothing on show is its.
    if (boot !== null && boot !== status.boot) return location.reload();
    boot = status.boot;
    setClock(status.now);
    write(byId("version"), status.version);
    overview(status);
    tree.show(status.reflectors, status.pending);
    events.offer(status.reflectors);
  });
  stream.addEventListener("changes", (message) => {
    const news = JSON.parse(message.data);
    setClock(news.now);
    events.add(news);
    object.changed(news.changes);
  });
}

function connected(state) {
  const lamp = byId("connection");
  write(lamp, state);
  mark(lamp, "data-state", state);
  lamp.className = `lamp ${{ live: "good", closed: "bad" }[state] ?? "poor"}`;
  document.body.classList.toggle("offline", state !== "live");
}

function overview({ reflectors, pending, stopped }) {
  const objects = reflectors.reduce((sum, one) => sum + one.objects, 0);
  const worst = ["bad", "poor", "busy"].find((health) => reflectors.some((one) => one.health === health));
  const howMany = reflectors.filter((one) => one.health === worst).length;
  const state = { bad: "need help", poor: "in trouble", busy: "getting ready" }[worst];
  const names = reflectors.length === 1 ? "reflector" : "reflectors";
  write(byId("amounts"), `${reflectors.length} ${names} · ${count(objects)} ${objects === 1 ? "object" : "objects"} · `);
  // Only this is read out when it changes: the numbers always do.
  const wellness = pending.length ? `${pending.length} waiting` : reflectors.length ? "all is well" : "nothing to do";
  write(byId("wellness"), stopped ? "the runtime has been stopped" : worst ? `${howMany} ${state}` : wellness);
  mark(byId("wellness"), "class", stopped ? "bad" : worst ?? (pending.length ? "poor" : "good"));
  document.title = worst && worst !== "busy" ? `(!) ${howMany} ${state} · kubeflect` : "kubeflect";
}

const THEMES = ["system", "dark", "light"];

function theme(chosen) {
  document.documentElement.dataset.theme = chosen;
  write(byId("theme").querySelector("span"), chosen);
  try {
    localStorage.setItem("theme", chosen);
  } catch {
    // A browser that keeps nothing: then it is for now.
  }
}

function keptTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

function nextTheme() {
  const at = THEMES.indexOf(document.documentElement.dataset.theme);
  theme(THEMES[(at + 1) % THEMES.length]);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const writing = event.target.matches("input, select");
  if (event.key === "Escape") {
    if (writing) events.clear();
    else object.close();
    byId("rows").focus();
  } else if (writing) {
    if (event.key === "Enter") byId("rows").focus();
    return;
  } else if (/^[1-9]$/.test(event.key)) tree.focus(Number(event.key) - 1);
  else if (event.key === "/") byId("text").focus();
  else if (event.key === "p") events.pause();
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") byId("help").showModal();
  else if (event.key === "j") events.move(1);
  else if (event.key === "k") events.move(-1);
  else return;
  event.preventDefault();
}

theme(THEMES.includes(keptTheme()) ? keptTheme() : "system");
byId("theme").addEventListener("click", nextTheme);
byId("keys").addEventListener("click", () => byId("help").showModal());
document.addEventListener("keydown", keys);
events.start(object.open);
follow();
setInterval(tree.tick, 100);
