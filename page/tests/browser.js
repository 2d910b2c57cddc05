// Chromium without a window, driven as a person would: by its DevTools protocol over two pipes, with real mouse and keyboard events.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts it. */
export async function openBrowser() {
  const folder = mkdtempSync(join(tmpdir(), 'hbbp-page-'));
  // Without the sandbox, which does not start in containers. It opens pages that were just written, and nothing else.
  const options = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--disable-dev-shm-usage', '--no-first-run'];
  const child = spawn('chromium', [...options, '--remote-debugging-pipe', `--user-data-dir=${folder}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  const connection = connect(child);
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  return {
    /** Opens a page of that width; `scheme` is light or dark. */
    async open(url, { width, height = 1000, scheme = 'light' }) {
      const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
      const page = makePage(connection, sessionId);
      await page.begin(url, { width, height, scheme });
      return page;
    },
    async close() {
      await connection.send('Browser.close').catch(() => {});
      await ended;
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Commands and events, separated by zero bytes. */
function connect(child) {
  const [input, output] = [child.stdio[3], child.stdio[4]];
  const [waiting, listeners] = [new Map(), []];
  let [last, received] = [0, ''];
  output.setEncoding('utf8');
  output.on('data', (text) => {
    const messages = (received + text).split('\0');
    received = messages.pop();
    messages.map((message) => JSON.parse(message)).forEach(receive);
  });
  const fail = () => waiting.forEach(({ reject }) => reject(new Error('chromium has ended')));
  child.once('exit', fail);
  child.once('error', fail);
  input.on('error', () => {});
  function receive({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      listeners.filter((listener) => listener.sessionId === sessionId).forEach(({ call }) => call(method, params));
      return;
    }
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }
  return {
    send(method, params = {}, sessionId = undefined) {
      last += 1;
      const id = last;
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
      return new Promise((resolve, reject) => { waiting.set(id, { resolve, reject }); });
    },
    listen(sessionId, call) {
      listeners.push({ sessionId, call });
    },
  };
}

function makePage(connection, sessionId) {
  const send = (method, params) => connection.send(method, params, sessionId);
  const page = {
    /** What went wrong, and what was loaded. */
    errors: [],
    loaded: [],

    async begin(url, { width, height, scheme }) {
      let dragged = null;
      connection.listen(sessionId, (method, params) => {
        if (method === 'Runtime.exceptionThrown') page.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
        if (method === 'Log.entryAdded' && params.entry.level === 'error') page.errors.push(params.entry.text);
        if (method === 'Network.requestWillBeSent') page.loaded.push(params.request.url);
        if (method === 'Page.javascriptDialogOpening') page.errors.push(`a dialog: ${params.message}`);
        if (method === 'Input.dragIntercepted') dragged?.(params.data);
      });
      page.waitForDrag = () => new Promise((resolve) => { dragged = resolve; });
      for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`);
      await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
      await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      await send('Input.setInterceptDrags', { enabled: true });
      await send('Page.navigate', { url });
      await page.until("document.documentElement?.dataset.ready === 'true'");
    },

    async evaluate(expression) {
      const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },

    /** Waits for what must become true; gives up after a minute. */
    async until(expression) {
      for (let round = 0; round < 1200; round += 1) {
        if (await page.evaluate(expression)) return;
        if (page.errors.length > 0) break;
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
      throw new Error(`this never became true: ${expression}; ${page.errors}`);
    },

    /**
     * The middle of the first element that is shown and matches, and has the text if one is given. It must not be covered. What a click shows
     * may come after a moment: it is waited for.
     */
    async middle(selector, text, scrolls = true) {
      for (let round = 0; ; round += 1) {
        const found = await page.place(selector, text, scrolls);
        if (Array.isArray(found)) return found;
        if (round === 100) throw new Error(`${selector} ${text ?? ''}: ${found ?? 'is not there'}`);
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
    },

    /** The same at once: null if there is none, and a text if it is covered, or not where it was two frames before. */
    place(selector, text, scrolls) {
      return page.evaluate(`(async () => {
        const text = ${JSON.stringify(text ?? null)};
        const element = [...document.querySelectorAll(${JSON.stringify(selector)})]
          .find((one) => one.getClientRects().length > 0 && (text === null || one.textContent.trim() === text));
        if (!element) return null;
        if (${scrolls}) element.scrollIntoView({ block: 'center', inline: 'center' });
        const middle = () => [...element.getClientRects()].slice(0, 1).flatMap(({ x, y, width, height }) => [x + width / 2, y + height / 2]);
        const before = middle();
        // Where no frames come, time goes on.
        const frame = () => Promise.race([requestAnimationFrame, (then) => setTimeout(then, 1000)].map((when) => new Promise(when)));
        for (let passed = 0; passed < 2; passed += 1) await frame();
        const at = middle();
        if (String(at) !== String(before)) return 'it moves';
        const there = document.elementFromPoint(...at);
        return element.contains(there) || there?.contains(element) ? at : \`covered by \${there?.outerHTML.slice(0, 200)}\`;
      })()`);
    },

    async click(selector, text) {
      const [x, y] = await page.middle(selector, text);
      for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) {
        await send('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' ? 'none' : 'left', clickCount: 1 });
      }
    },

    /** Drags one element onto another. */
    async drag(from, to) {
      const [x, y] = await page.middle(from);
      const [toX, toY] = await page.middle(to, undefined, false);
      const data = page.waitForDrag();
      await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y });
      await send('Input.dispatchMouseEvent', { type: 'mousePressed', x, y, button: 'left', clickCount: 1 });
      for (const step of [5, 20]) await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: x + step, y, button: 'left', buttons: 1 });
      const dragged = await data;
      for (const type of ['dragEnter', 'dragOver', 'drop']) await send('Input.dispatchDragEvent', { type, x: toX, y: toY, data: dragged });
      await send('Input.dispatchMouseEvent', { type: 'mouseReleased', x: toX, y: toY, button: 'left', clickCount: 1 });
    },

    /** Chooses an option of a list, as a person would by its first letters: the list gets what a choice gives it. */
    async choose(selector, value) {
      await page.middle(selector);
      await page.evaluate(`(() => {
        const list = document.querySelector(${JSON.stringify(selector)});
        list.value = ${JSON.stringify(value)};
        list.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    },

    async key(key) {
      const codes = { Enter: 13, Tab: 9, ArrowDown: 40, ArrowUp: 38 };
      const text = key.length === 1 ? key : { Enter: '\r' }[key];
      const event = { key, code: key, text, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0) };
      await send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', ...event });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },

    type(text) {
      return send('Input.insertText', { text });
    },

    back() {
      return page.evaluate('history.back()');
    },

    /** The texts of all elements that are shown and match. */
    texts(selector) {
      return page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})]
        .filter((one) => one.getClientRects().length > 0).map((one) => one.textContent.trim())`);
    },

    /** As on paper (`print`), while the browser wishes that scheme. */
    media(media, scheme) {
      return send('Emulation.setEmulatedMedia', { media, features: [{ name: 'prefers-color-scheme', value: scheme }] });
    },

    /** A picture of the whole page. */
    async picture(file) {
      const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: false });
      writeFileSync(file, Buffer.from(data, 'base64'));
    },

    close() {
      return send('Page.close').catch(() => {});
    },
  };
  return page;
}
