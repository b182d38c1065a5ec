// Words the tests are written in.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** The example program with its cluster; `crash(actor)` makes one of its actors panic. */
export async function startProgram() {
  const child = spawn(process.env.DASHBOARD, { stdio: ["pipe", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: url } = await lines.next();
  return {
    url,
    crash: (actor) => child.stdin.write(`${actor}\n`),
    stop: () => new Promise((stopped) => { child.on("exit", stopped); child.stdin.end(); }),
    kill: () => new Promise((stopped) => { child.on("exit", stopped); child.kill("SIGKILL"); }),
  };
}

export function startBrowser() {
  // A container's own sandbox has to do where the browser's is not allowed.
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}

/** A page that remembers everything that should not happen. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const wrongs = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrongs.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrongs.push(`error: ${error}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) wrongs.push(`asks elsewhere: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) wrongs.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(url);
  return { page, wrongs, close: () => context.close() };
}
