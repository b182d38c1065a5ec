// The page of `kubeflect` itself, through what happens to programs: servers and they themselves come and go.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { freeAddress, startBrowser, startKubeflect, visit } from "./support.js";

const PATIENCE = 60_000;
let browser, folder, page, wrongs;
const ends = [];

before(async () => {
  browser = await startBrowser();
  folder = await mkdtemp(join(tmpdir(), "kubeflect-browser-"));
});
after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  while (ends.length) await ends.pop()();
});

async function start(url, ...parameters) {
  const program = await startKubeflect(url, ...parameters);
  ends.push(program.kill);
  return program;
}

async function look(url) {
  const visited = await visit(browser, url);
  ({ page, wrongs } = visited);
  ends.push(visited.close);
  page.setDefaultTimeout(PATIENCE);
}

const card = (resource) => page.locator(`.reflector[data-resource="${resource}"]`);
const healthy = (resource) => card(resource).and(page.locator('[data-health="good"][data-phase="watching"]')).waitFor();
const objects = async (resource) => Number(await card(resource).locator(".figures .objects").innerText());
const shown = () => page.locator(".reflector").evaluateAll((cards) => cards.map((card) => card.dataset.resource).sort());

test("kubeflect alone shows a lively cluster of its own", async () => {
  const address = await freeAddress();
  await start(`http://${address}/livez`, "run", "--demo", "--listen", address);
  await look(`http://${address}/`);
  await Promise.all(["pods", "deployments.apps", "nodes"].map(healthy));
  assert.deepEqual(await shown(), ["deployments.apps", "nodes", "pods"]);
  assert.equal(await objects("nodes"), 3);
  assert.equal(await objects("deployments.apps"), 5);
  assert.ok((await objects("pods")) > 10);
  const newest = Number(await page.locator("#rows .event").first().getAttribute("data-number"));
  await page.waitForFunction((before) => Number(document.querySelector("#rows .event").dataset.number) > before, newest);
  assert.deepEqual(wrongs, [], "no console error, no failed request, no request off the origin");
});

test("a cluster that goes away is waited for with backoff, and back in health before one's eyes", async () => {
  const [server, address] = [await freeAddress(), await freeAddress()];
  const cluster = ["api-server", "--listen", server];
  const first = await start(`http://${server}/version`, ...cluster);
  await start(`http://${address}/livez`, "run", "--server", `http://${server}`, "--listen", address);
  await look(`http://${address}/`);
  await healthy("pods");
  await first.kill();
  const seen = await page.waitForFunction(() => {
    const card = document.querySelector('[data-resource="pods"]');
    const wait = card.querySelector(".title .wait").innerText;
    const condition = card.querySelector(".condition").innerText;
    // What happened once may be nothing: a condition is what goes on.
    if (card.dataset.phase !== "backing off" || !wait.startsWith("in ") || !condition) return null;
    return { health: card.dataset.health, condition, freshness: card.querySelector(".freshness").innerText };
  });
  const { health, condition, freshness } = await seen.jsonValue();
  assert.equal(health, "poor");
  assert.match(condition, /can not watch pods[\s\S]*what to do/);
  assert.match(freshness, /^stale/);
  await start(`http://${server}/version`, ...cluster);
  await Promise.all(["pods", "deployments.apps", "nodes"].map(healthy));
  assert.match(await page.locator("#overview").innerText(), /all is well$/);
  assert.deepEqual(wrongs, [], "no console error, no failed request, no request off the origin");
});

test("after the program was started anew, the page is live again and true", async () => {
  const address = await freeAddress();
  const config = join(folder, "kubeflect.toml");
  const reflecting = (...kinds) => writeFile(config, kinds.map((kind, at) => `[reflectors.number-${at}]\nkind = "${kind}"\nsinks = []\n`).join(""));
  const parameters = ["run", "--demo", "--config", config, "--listen", address];
  // One that never had so many events, one that soon has more: neither is to be taken for a part of the first.
  const rates = [["--churn", "20/s"], ["--churn", "0"], ["--churn", "50/s"]];
  await reflecting("nodes", "pods");
  let program = await start(`http://${address}/livez`, ...parameters, ...rates[0]);
  await look(`http://${address}/`);
  await Promise.all(["nodes", "pods"].map(healthy));
  await page.locator("#rows .event").nth(60).waitFor();

  for (const rate of rates.slice(1)) {
    await program.kill();
    await page.locator('#connection[data-state="reconnecting"]').waitFor();
    await reflecting("pods", "nodes", "deployments");
    program = await start(`http://${address}/livez`, ...parameters, ...rate);
    await page.locator('#connection[data-state="live"]').waitFor();
    await card("deployments.apps").waitFor();
    await Promise.all(["pods", "nodes", "deployments.apps"].map(healthy));
    assert.equal(await objects("nodes"), 3);
    assert.ok((await objects("pods")) > 3);
    assert.deepEqual(await shown(), ["deployments.apps", "nodes", "pods"]);
    const told = await page.locator("#rows .event").evaluateAll((rows) => rows.map((row) => Number(row.dataset.number)));
    const ordered = [...new Set(told)].sort((one, other) => other - one);
    assert.deepEqual(told, ordered, "every event once, the newest first");
    assert.equal(told.at(-1), Math.max(1, told[0] - 499), "nothing skipped");
  }
});
