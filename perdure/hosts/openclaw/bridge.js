// The Python child of a host process: JSON-RPC 2.0 over stdio, a message a line.
// Whatever becomes of the child, a turn goes on: the worst case is a turn without memory.
import { createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const ID = "perdure";
const PROTOCOL = 1;
const START_MS = 15000;
const PING_MS = 1000;
const QUIET_MS = 60000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30000;
const STEADY_MS = 60000;
const STOP_MS = 3000;
const MAX_LINE = 8_000_000;
const MAX_TEXT = 200_000;
const SESSIONS = 512;
const HISTORY_UNKNOWN = -32001;

// Keys of models and channels in the gateway's environment are none of the child's business.
const PASSED = /^(PERDURE_.*|OPENCLAW_(HOME|STATE_DIR|CONFIG_PATH)|PATH|PYTHONPATH|HOME|USER|LANG|LC_.*|TZ|TMP|TEMP|TMPDIR|XDG_.*|SYSTEMROOT|USERPROFILE|APPDATA|LOCALAPPDATA|LD_LIBRARY_PATH)$/i;

export function environment(config) {
  const named = [config.embedderKeyEnv, config.llmKeyEnv].filter(Boolean);
  const passed = Object.entries(process.env).filter(([key]) => PASSED.test(key) || named.includes(key));
  return { ...Object.fromEntries(passed), PYTHONUNBUFFERED: "1" };
}

export class Bridge {
  constructor() {
    this.pending = new Map();
    this.histories = new Map();
    this.said = new Map();
    this.sequence = 0;
    this.failures = 0;
    this.lateRecalls = 0;
    this.notBefore = 0;
    this.config = {};
  }

  configure(config, logger) {
    this.config = config;
    this.logger = logger;
  }

  // The same words at most once a minute: a broken memory must not fill the log.
  warn(text) {
    const now = Date.now();
    if (now - (this.said.get(text) ?? -QUIET_MS) < QUIET_MS) return;
    if (this.said.size > 100) this.said.clear();
    this.said.set(text, now);
    this.logger?.warn?.(`${ID}: ${text}`);
  }

  start() {
    if (this.child) return this.ready;
    if (Date.now() < this.notBefore) return Promise.reject(new Error("the memory process is being started again"));
    const python = this.config.python || "python3";
    const child = spawn(python, ["-u", "-P", "-m", "perdure.hosts.openclaw"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: environment(this.config),
      windowsHide: true,
    });
    this.child = child;
    this.histories.clear();
    this.lateRecalls = 0;
    const startedAt = Date.now();
    child.once("error", (error) => this.lost(child, startedAt, `${python}: ${error.message}`));
    child.once("exit", (code, signal) => this.lost(child, startedAt, signal ?? `exit code ${code}`));
    child.stdin.on("error", () => {});
    createInterface({ input: child.stdout }).on("line", (line) => this.answered(line));
    createInterface({ input: child.stderr }).on("line", (line) => this.logger?.info?.(`${ID}: ${line}`));
    // The host may end while the child runs; it then sees its stdin close.
    for (const each of [child, child.stdin, child.stdout, child.stderr]) each.unref?.();
    this.ready = this.send("initialize", { protocol: PROTOCOL, config: this.config }, START_MS).then((reply) => {
      this.send("gateway_start", {}, START_MS).catch((error) => this.warn(error.message));
      return reply;
    });
    // A child that starts and says nothing would otherwise stay for good.
    this.ready.catch((error) => this.kill(child, error.message));
    return this.ready;
  }

  lost(child, startedAt, why) {
    if (this.child !== child) return;
    this.child = undefined;
    this.failures = Date.now() - startedAt > STEADY_MS ? 1 : this.failures + 1;
    this.notBefore = Date.now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    for (const call of this.pending.values()) call.reject(new Error(`the memory process is gone (${why})`));
    this.pending.clear();
    this.warn(`the memory process is gone (${why}); it is started again when it is needed`);
  }

  kill(child, why) {
    if (this.child !== child || !child) return;
    this.warn(`the memory process is ended: ${why}`);
    child.kill("SIGKILL");
  }

  answered(line) {
    let reply;
    try {
      reply = JSON.parse(line);
    } catch {
      this.warn("the memory process sent a line that is no JSON");
      return;
    }
    const call = this.pending.get(reply.id);
    if (!call) return;
    this.pending.delete(reply.id);
    if (reply.error) call.reject(Object.assign(new Error(reply.error.message), { code: reply.error.code }));
    else call.resolve(reply.result);
  }

  send(method, params, limit, signal) {
    const child = this.child;
    const id = ++this.sequence;
    const line = `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
    if (line.length > MAX_LINE) return Promise.reject(new Error(`${method} is too large to be sent`));
    return new Promise((resolve, reject) => {
      const settle = (how) => (value) => {
        clearTimeout(timer);
        signal?.removeEventListener?.("abort", abort);
        how(value);
      };
      const give = (why) => {
        if (!this.pending.delete(id)) return;
        this.write(child, { jsonrpc: "2.0", method: "$/cancel", params: { id } });
        settle(reject)(new Error(why));
      };
      const abort = () => give(`${method} was cancelled`);
      const timer = setTimeout(() => {
        give(`${method} took more than ${limit} ms`);
        this.late(child, method);
      }, limit);
      signal?.addEventListener?.("abort", abort, { once: true });
      this.pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      if (signal?.aborted) abort();
      else child.stdin.write(line);
    });
  }

  write(child, message) {
    if (child && this.child === child) child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  // A child that does not even answer a ping hangs; one whose recall is late twice in a row is no use either.
  late(child, method) {
    if (this.child !== child || method === "ping") return;
    if (method === "before_prompt_build" && ++this.lateRecalls >= 2) return this.kill(child, "recall hangs");
    this.send("ping", {}, PING_MS).catch(() => this.kill(child, "it does not answer"));
  }

  async call(method, params, limit, signal) {
    const until = Date.now() + limit;
    const waiting = this.start();
    let timer;
    const patience = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("the memory process is starting")), limit);
    });
    try {
      await Promise.race([waiting, patience]);
    } finally {
      clearTimeout(timer);
    }
    const result = await this.send(method, params, Math.max(1, until - Date.now()), signal);
    if (method === "before_prompt_build") this.lateRecalls = 0;
    this.failures = 0;
    return result;
  }

  // Never throws. A session's history is sent from where the last turn of it ended, if that much is unchanged.
  async attempt(method, params, limit, signal) {
    try {
      return await this.call(method, params, limit, signal);
    } catch (error) {
      this.warn(`${method}: ${error.message}`);
      return undefined;
    }
  }

  async history(method, event, ctx, limit) {
    const key = `${ctx.agentId}\0${ctx.sessionId ?? ctx.sessionKey}`;
    const messages = slim(event.messages);
    const rest = { event: { success: event.success === true }, ctx };
    for (const whole of [false, true]) {
      const known = whole ? undefined : this.histories.get(key);
      const marks = digests(messages, known?.count);
      const resumed = known !== undefined && marks.before === known.mark;
      const history = {
        before: resumed ? known.mark : "",
        after: marks.after,
        messages: resumed ? messages.slice(known.count) : messages,
      };
      try {
        await this.call(method, { ...rest, history }, limit);
        this.histories.delete(key);
        this.histories.set(key, { count: messages.length, mark: marks.after });
        if (this.histories.size > SESSIONS) this.histories.delete(this.histories.keys().next().value);
        return;
      } catch (error) {
        this.histories.delete(key);
        if (error.code === HISTORY_UNKNOWN && resumed) continue;
        this.warn(`${method}: ${error.message}`);
        return;
      }
    }
  }

  stop() {
    const child = this.child;
    if (!child) return Promise.resolve();
    this.child = undefined;
    for (const call of this.pending.values()) call.reject(new Error("the host stops"));
    this.pending.clear();
    return new Promise((resolve) => {
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      child.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      child.stdin.end();
    });
  }
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part?.text === "string" && part.type === "text" ? part.text : "")).filter(Boolean).join("\n");
}

// What people and the model said; tool results, thinking and what the host adds stay here.
function slim(messages) {
  if (!Array.isArray(messages)) return [];
  return messages
    .filter((message) => message?.role === "user" || message?.role === "assistant")
    .map((message) => ({ role: message.role, content: textOf(message.content).slice(0, MAX_TEXT), timestamp: message.timestamp }))
    .filter((message) => message.content);
}

// Marks of the first `count` messages and of all of them. Only role and text count: the rest changes with age.
function digests(messages, count) {
  const hash = createHash("sha256");
  let before = count === 0 ? "none" : undefined;
  messages.forEach((message, index) => {
    hash.update(`${message.role}\0${message.content.length}\0${message.content}`);
    if (index + 1 === count) before = hash.copy().digest("hex");
  });
  return { before, after: messages.length ? hash.digest("hex") : "none" };
}
