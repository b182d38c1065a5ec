// Words the tests are written in.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** The example program with its cluster; `crash(actor)` makes one of its actors panic. */
export async function startExample() {
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

/** `kubeflect` itself, until killed; it has begun when `url` answers. */
export async function startKubeflect(url, ...parameters) {
  const child = spawn(process.env.KUBEFLECT, parameters, { stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  child.stderr.on("data", (text) => { told += text; });
  const answers = () => fetch(url).then((answer) => answer.ok, () => false);
  while (!(await answers())) {
    if (child.exitCode !== null) throw new Error(`kubeflect ${parameters.join(" ")} ended: ${told}`);
    await new Promise((passed) => setTimeout(passed, 50));
  }
  const gone = new Promise((stopped) => child.on("exit", stopped));
  return { kill: () => { child.kill("SIGKILL"); return gone; } };
}

/** An address nobody listens on. */
export function freeAddress() {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(`127.0.0.1:${port}`));
    });
  });
}

export function startBrowser() {
  // A container's own sandbox has to do where the browser's is not allowed.
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}

/** A page that remembers everything that should not happen. */
export async function visit(browser, url, { before, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  if (before) await context.addInitScript(before);
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
