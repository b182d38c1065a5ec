// What a reader of the page sees and can do, in a real browser against an example whose actors can be crashed.
import assert from "node:assert/strict";
import { after, before, beforeEach, afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startBrowser, startExample, visit } from "./support.js";

const PATIENCE = 60_000;
let browser, program, page, wrongs, close;

before(async () => {
  program = await startExample();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await program?.stop();
});
beforeEach(async () => {
  ({ page, wrongs, close } = await visit(browser, program.url));
  page.setDefaultTimeout(PATIENCE);
});
afterEach(async () => {
  await close();
  assert.deepEqual(wrongs, [], "no console error, no failed request, no request off the origin");
});

const card = (resource) => page.locator(`.reflector[data-resource="${resource}"]`);
const events = () => page.locator("#rows .event");
const healthy = (resource) => card(resource).and(page.locator('[data-health="good"][data-phase="watching"]')).waitFor();
const figure = async (resource, name) => (await card(resource).locator(`.figures .${name}`).innerText()).trim();

test("the page shows the demo cluster", async () => {
  await Promise.all(["pods", "deployments.apps", "nodes"].map(healthy));
  assert.equal(await figure("nodes", "objects"), "3");
  assert.equal(await figure("deployments.apps", "objects"), "5");
  assert.ok(Number(await figure("pods", "objects")) > 10);
  assert.equal(await figure("pods", "freshness"), "fresh");
  assert.match(await page.locator("#overview").innerText(), /^3 reflectors · \d+ objects · all is well$/);
  const actors = await card("pods").locator("[data-actor]").evaluateAll((rows) => rows.map((row) => row.dataset.actor));
  assert.deepEqual(actors, ["supervisor", "resync_timer", "delta_fifo_store", "publisher"]);
  assert.match(await card("pods").locator(".row.child").innerText(), /watcher/);
  assert.match(await card("pods").locator("[data-subscriber]").innerText(), /dashboard[\s\S]*every one ≤ 512[\s\S]*0 behind/);
});

test("the page is live", async () => {
  await healthy("pods");
  const version = await figure("pods", "version");
  await page.waitForFunction((before) => document.querySelector('[data-resource="pods"] .version').textContent !== before, version);
  await events().first().waitFor();
  const newest = await events().first().getAttribute("data-number");
  await page.waitForFunction((before) => Number(document.querySelector("#rows .event").dataset.number) > before, Number(newest));
  await page.waitForFunction(() => Number(document.querySelector('[data-resource="pods"] .rate').textContent) > 0);
  assert.equal(await page.locator("#connection").innerText(), "live");
});

/** What the page shows at one moment of a backoff, which may be short: then the watcher is killed once more. */
async function inBackoff(resource) {
  for (let attempt = 1; ; attempt += 1) {
    program.crash("watcher");
    const shown = page.waitForFunction((resource) => {
      const card = document.querySelector(`[data-resource="${resource}"]`);
      const wait = card.querySelector(".title .wait").innerText;
      if (card.dataset.phase !== "backing off" || !wait.startsWith("in ")) return null;
      const [condition, overview] = [card.querySelector(".condition"), document.querySelector("#overview")];
      return { health: card.dataset.health, wait, condition: condition.innerText, overview: overview.innerText };
    }, resource, { timeout: 6000 });
    try {
      return await (await shown).jsonValue();
    } catch (error) {
      if (attempt === 3) throw error;
      await healthy(resource);
    }
  }
}

test("a killed watcher goes through backoff to healthy before one's eyes", async () => {
  await healthy("pods");
  const seen = await inBackoff("pods");
  assert.equal(seen.health, "poor");
  assert.match(seen.wait, /^in \d+(\.\d)? (s|ms)$/);
  assert.match(seen.condition, /can not watch pods[\s\S]*planned fault[\s\S]*what to do/);
  assert.match(seen.overview, /1 in trouble/);
  await healthy("pods");
  assert.ok(await card("pods").locator(".condition").isHidden());
  await card("pods").locator(".failures summary").click();
  assert.match(await card("pods").locator(".failures p").first().innerText(), /watch: .*planned fault/);
});

test("a killed actor is restarted, with its reason on show", async () => {
  await healthy("pods");
  const actor = card("pods").locator('[data-actor="publisher"]');
  program.crash("publisher");
  await actor.locator(".restarts").waitFor();
  program.crash("publisher");
  await actor.getByText("backing off").waitFor();
  await actor.locator(".state").getByText("running").waitFor();
  await healthy("pods");
  await actor.locator(".restarts > summary").click();
  const reason = actor.locator(".restarts p").first();
  assert.match(await reason.innerText(), /panicked: planned fault: publisher at Publish/);
  program.crash("publisher");
  await actor.getByText("3 restarts").waitFor();
  assert.ok(await reason.isVisible(), "what was opened stays open");
  await actor.locator(".state").getByText("running").waitFor();
});

test("events can be filtered by text, kind and type, and paused", async () => {
  await events().nth(30).waitFor();
  await page.locator("#pause").click();
  const all = await events().count();
  const attributes = (name) => events().evaluateAll((rows, name) => [...new Set(rows.map((row) => row.dataset[name]))], name);

  await page.locator("#resource").selectOption("nodes");
  assert.deepEqual(await attributes("resource"), ["nodes"]);
  await page.locator("#resource").selectOption("");
  await page.locator('.types [data-type="UPDATED"]').click();
  assert.ok(!(await attributes("type")).includes("UPDATED"));
  await page.locator('.types [data-type="UPDATED"]').click();
  await page.locator("#text").fill("shop/worker");
  const keys = await events().locator(".key").allInnerTexts();
  assert.ok(keys.length > 0 && keys.every((key) => key.includes("shop/worker")), keys.join());
  assert.ok(keys.length < all);
  await page.locator("#text").fill("no such thing");
  assert.equal(await events().count(), 0);
  await page.locator("#text").fill("");

  assert.equal(await events().count(), all, "paused");
  await page.getByText(/paused, [1-9]\d* since/).waitFor();
  await page.locator("#pause").click();
  await page.waitForFunction((before) => document.querySelectorAll("#rows .event").length > before, all);
});

test("an object shows its metadata and history", async () => {
  await page.locator("#resource").selectOption("nodes");
  await events().first().click();
  const panel = page.locator("#object");
  await panel.getByText("resourceVersion").waitFor();
  assert.match(await panel.innerText(), /Node node-\d[\s\S]*uid[\s\S]*changes seen \(\d+\)/);
  const newest = await panel.locator(".history li").first().innerText();
  await page.waitForFunction((before) => document.querySelector("#object .history li").innerText !== before, newest);
  await panel.getByRole("button", { name: "Close the object" }).click();
  assert.ok(await panel.isHidden());
});

test("from a fresh page, j and Enter show an object, and arrows are for the events only", async () => {
  await events().nth(5).waitFor();
  await page.keyboard.press("p");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator('#rows [aria-selected="true"]').count(), 0, "arrows scroll the page");
  await page.keyboard.press("j");
  await page.keyboard.press("ArrowDown");
  assert.equal(await events().nth(1).getAttribute("aria-selected"), "true");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.locator("#object .history li").first().waitFor();
  await page.locator("#resource").focus();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await page.locator("#resource").inputValue(), "", "an arrow chooses a kind");
});

test("only what is news is read out", async () => {
  await healthy("pods");
  program.crash("watcher");
  await card("pods").locator(".condition [data-since]").waitFor();
  await page.evaluate(() => {
    window.readOut = [];
    for (const live of document.querySelectorAll('[role="alert"], [role="status"], [aria-live]')) {
      new MutationObserver(() => { if (live.innerText) window.readOut.push(live.innerText); }).observe(live, { childList: true, characterData: true, subtree: true });
    }
  });
  await healthy("pods");
  const readOut = await page.evaluate(() => window.readOut);
  assert.ok(readOut.length <= 4, readOut.join(" | "));
  assert.ok(readOut.every((text) => !/\d+(\.\d)? (s|ms)/.test(text)), readOut.join(" | "));
});

test("what is refused is told, and a browser that keeps nothing is fine", async () => {
  const visited = await visit(browser, program.url, { before: () => {
    Object.defineProperty(window, "localStorage", { get: () => { throw new DOMException("no", "SecurityError"); } });
  } });
  await visited.page.route("**/objects?*", (route) => route.fulfill({ status: 200, contentType: "text/plain", body: "not for you\n" }));
  await visited.page.locator("#rows .event").first().click();
  await visited.page.locator("#object").getByText("not for you").waitFor();
  await visited.page.keyboard.press("t");
  assert.equal(await visited.page.locator("html").getAttribute("data-theme"), "dark");
  await visited.close();
  assert.deepEqual(visited.wrongs, []);
});

test("everything works without a mouse", async () => {
  await events().nth(5).waitFor();
  await page.keyboard.press("p");
  assert.equal(await page.locator("#pause").innerText(), "go on");
  await page.keyboard.press("/");
  await page.keyboard.type("pods");
  await page.keyboard.press("Enter");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  assert.equal(await events().nth(1).getAttribute("aria-selected"), "true");
  await page.keyboard.press("k");
  assert.equal(await events().nth(0).getAttribute("aria-selected"), "true");
  await page.keyboard.press("Enter");
  await page.locator("#object .history li").first().waitFor();
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#object").isHidden());
  await page.keyboard.press("1");
  assert.ok(await card("pods").locator("> summary").evaluate((summary) => summary === document.activeElement));
  await page.keyboard.press("Enter");
  assert.equal(await card("pods").getAttribute("open"), null);
  await page.keyboard.press("?");
  assert.ok(await page.locator("#help").evaluate((help) => help.open));
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#help").evaluate((help) => help.open)));
  for (const theme of ["dark", "light", "system"]) {
    await page.keyboard.press("t");
    assert.equal(await page.locator("html").getAttribute("data-theme"), theme);
  }
  const reachable = new Set();
  for (const key of ["Tab", "Shift+Tab"]) {
    for (let press = 0; press < 40; press++) {
      await page.keyboard.press(key);
      reachable.add(await page.evaluate(() => document.activeElement.id || document.activeElement.tagName));
    }
  }
  for (const control of ["theme", "keys", "text", "resource", "pause", "rows", "SUMMARY"]) assert.ok(reachable.has(control), control);
});

test("nothing is cut off at narrow widths", async () => {
  for (const width of [360, 768, 1024]) {
    await page.setViewportSize({ width, height: 800 });
    await healthy("pods");
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide at ${width}`);
  }
});

test("colours follow the system, and texts stand out from their ground", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const [text, faint, ground] = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return ["--text", "--faint", "--surface"].map((name) => style.getPropertyValue(name).trim());
    });
    assert.ok(contrast(text, ground) >= 7, `${colorScheme}: ${text} on ${ground}`);
    assert.ok(contrast(faint, ground) >= 4.5, `${colorScheme}: ${faint} on ${ground}`);
  }
});

test("the page says so when the program is gone", async () => {
  const other = await startExample();
  const visited = await visit(browser, other.url);
  await visited.page.locator('#connection[data-state="live"]').waitFor();
  await other.kill();
  await visited.page.locator('#connection[data-state="reconnecting"]').waitFor();
  await visited.close();
});

test("pictures are taken", { skip: !process.env.SCREENSHOTS }, async () => {
  const picture = (name) => fileURLToPath(new URL(`screenshots/${name}.png`, import.meta.url));
  await events().nth(60).waitFor();
  await page.waitForTimeout(20_000);
  await page.locator("#resource").selectOption("deployments.apps");
  await events().first().click();
  await page.locator("#object .history li").first().waitFor();
  await page.locator("#resource").selectOption("");
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(500); // colours fade
    await page.screenshot({ path: picture(colorScheme) });
  }
  program.crash("watcher");
  await card("pods").and(page.locator('[data-phase="backing off"]')).waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: picture("backoff") });
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: picture("narrow") });
});

function contrast(one, other) {
  const [lighter, darker] = [one, other].map(luminance).sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color) {
  const channels = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = channels.map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
