// The Python child of a host process: JSON-RPC 2.0 over stdio, a message a line, both ways.
// Whatever becomes of the child, a turn goes on: the worst case is a turn without memory.
import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const PROTOCOL = 2;
const FAILED = -32000;
const START_MS = 15000;
const PING_MS = 1000;
const MINUTE_MS = 60000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30000;
const STOP_MS = 3000;
const MAX_LINE = 8_000_000;
const MAX_TEXT = 200_000;
const MAX_WORK = 2_000_000;
const MOST_KEPT = 512;

// Keys of models and channels in the gateway's environment are none of the child's business.
const PASSED = /^(PERDURE_.*|ANTHROPIC_BASE_URL|CLAUDE_CONFIG_DIR|CLAUDE_CODE_USE_(BEDROCK|VERTEX)|ORT_DISABLE_TELEMETRY|OPENCLAW_(HOME|STATE_DIR|CONFIG_PATH)|PATH|PYTHONPATH|HOME|USER|LANG|LC_.*|TZ|TMP|TEMP|TMPDIR|XDG_.*|SYSTEMROOT|USERPROFILE|APPDATA|LOCALAPPDATA|LD_LIBRARY_PATH)$/i;

// What the child asks for is no part of the hook that has started it, and must not end with that.
const apart = AsyncLocalStorage.snapshot();

export function environment(config) {
  const named = [config.embedderKeyEnv, config.llmKeyEnv].filter(Boolean);
  const passed = Object.entries(process.env).filter(([key]) => PASSED.test(key) || named.includes(key));
  return { ORT_DISABLE_TELEMETRY: "1", ...Object.fromEntries(passed) };
}

// Set a key of a map that holds what came last.
export function keep(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST_KEPT) map.delete(map.keys().next().value);
}

export class Bridge {
  config = {};
  pending = new Map();
  handed = new Map();
  said = new Map();
  sequence = 0;
  failures = 0;
  lateRecalls = 0;
  notBefore = 0;

  // The same words at most once a minute: a broken memory must not fill the log.
  warn(text) {
    const now = Date.now();
    if (now - (this.said.get(text) ?? -MINUTE_MS) < MINUTE_MS) return;
    keep(this.said, text, now);
    this.logger?.warn?.(`perdure: ${text}`);
  }

  start() {
    if (this.child) return;
    if (Date.now() < this.notBefore) throw new Error("the memory process is being restarted");
    const python = this.config.python || "python3";
    const child = spawn(python, ["-u", "-P", "-m", "perdure.hosts.openclaw"], { env: environment(this.config), windowsHide: true });
    Object.assign(this, { child, ready: false, lateRecalls: 0 });
    const startedAt = Date.now();
    child.once("error", (error) => this.lost(child, startedAt, `${python}: ${error.message}`));
    child.once("exit", (code, signal) => this.lost(child, startedAt, signal ?? `exit code ${code}`));
    child.stdin.on("error", () => {});
    createInterface({ input: child.stdout }).on("line", (line) => this.answered(child, line));
    createInterface({ input: child.stderr }).on("line", (line) => this.logger?.info?.(`perdure: ${line}`));
    // The host may end while the child runs; it then sees its stdin close.
    for (const each of [child, child.stdin, child.stdout, child.stderr]) each.unref?.();
    // The child reads in order, so what is asked next may be sent at once. One that says nothing must not stay for good.
    this.send("initialize", { protocol: PROTOCOL, config: this.config, lends: this.lends?.() === true }, START_MS)
      .then(() => (this.ready = true), (error) => this.kill(child, error.message));
    this.send("gateway_start", {}, START_MS).catch((error) => this.warn(error.message));
  }

  lost(child, startedAt, why) {
    if (this.child !== child) return;
    this.failures = Date.now() - startedAt > MINUTE_MS ? 1 : this.failures + 1;
    this.notBefore = Date.now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    this.leave(`the memory process exited (${why})`);
    this.warn(`the memory process exited (${why}); it will be restarted when needed`);
  }

  leave(why) {
    this.child = undefined;
    for (const call of this.pending.values()) call.reject(new Error(why));
    this.pending.clear();
  }

  kill(child, why) {
    if (this.child !== child) return;
    this.warn(`stopping the memory process: ${why}`);
    child.kill("SIGKILL");
  }

  answered(child, line) {
    try {
      const { id, method, params, result, error } = JSON.parse(line);
      if (method) apart(() => this.asked(child, id, method, params));
      else if (error) this.pending.get(id)?.reject(new Error(error.message));
      else this.pending.get(id)?.resolve(result);
    } catch {
      this.warn("the memory process sent a line that is not JSON");
    }
  }

  // The child asks for one thing: what the host's own model answers. It is told why it does not.
  async asked(child, id, method, params) {
    const gone = new AbortController();
    const leave = () => gone.abort();
    child.once("exit", leave);
    let answer;
    try {
      if (method !== "complete" || !this.complete) throw new Error("this host does not lend its model");
      answer = { result: await this.complete(params, gone.signal) };
    } catch (error) {
      answer = { error: { code: FAILED, message: [error.code, error.message].filter(Boolean).join(": ") } };
    }
    child.off("exit", leave);
    if (this.child === child) child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
  }

  send(method, params, limit, signal) {
    const child = this.child;
    const id = ++this.sequence;
    const line = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    if (line.length > MAX_LINE) return Promise.reject(new Error(`${method} is too large to send`));
    let call;
    const answer = new Promise((resolve, reject) => (call = { resolve, reject }));
    const give = (why) => {
      call.reject(new Error(why));
      if (this.child === child) child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "$/cancel", params: { id } })}\n`);
    };
    const abort = () => give(`${method} was cancelled`);
    const timer = setTimeout(() => {
      give(`${method} took more than ${limit} ms`);
      this.late(child, method);
    }, limit);
    signal?.addEventListener("abort", abort, { once: true });
    this.pending.set(id, call);
    if (signal?.aborted) abort();
    else child.stdin.write(`${line}\n`);
    return answer.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.pending.delete(id);
    });
  }

  // A child that does not even answer a ping hangs; one whose recall is late twice in a row is no use either.
  late(child, method) {
    if (this.child !== child || !this.ready || method === "ping") return;
    if (method === "before_prompt_build" && ++this.lateRecalls >= 2) this.kill(child, "recall hangs");
    else this.send("ping", {}, PING_MS).catch(() => this.kill(child, "it does not answer"));
  }

  // Never throws: no answer is undefined.
  async attempt(method, params, limit, signal) {
    try {
      this.start();
      const result = await this.send(method, params, limit, signal);
      if (method === "before_prompt_build") this.lateRecalls = 0;
      this.failures = 0;
      return result;
    } catch (error) {
      this.warn(`${method}: ${error.message}`);
    }
  }

  // What was kept already is left out, unless the host has shortened the history since; what was not comes again.
  async history(method, event, ctx, limit) {
    const key = `${ctx.agentId}\0${ctx.sessionId ?? ctx.sessionKey}`;
    const messages = Array.isArray(event.messages) ? event.messages : [];
    const { count, mark } = this.handed.get(key) ?? { count: 0 };
    this.handed.delete(key);
    // What the model did is kept in a project, if that is one.
    const fresh = slim(messages.slice(markOf(messages[count - 1]) === mark ? count : 0), ctx.activeProjectKeys?.length === 1);
    const done = await this.attempt(method, { event: { success: event.success === true }, ctx, messages: fresh }, limit);
    if (done && event.success === true) keep(this.handed, key, { count: messages.length, mark: markOf(messages.at(-1)) });
  }

  stop() {
    const child = this.child;
    this.leave("the host is stopping");
    return child && new Promise((resolve) => {
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      child.once("exit", () => resolve(clearTimeout(timer)));
      child.stdin.end();
    });
  }
}

function textOf(content) {
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
  return parts.filter((part) => part?.type === "text" && part.text && typeof part.text === "string").map((part) => part.text).join("\n");
}

// What people and the model said, and by whose word; thinking and what the host adds stay here, and so do the tools that
// the model used, and what they brought, unless it works in a project. More of these than fits into a line stays, too.
function slim(messages, works) {
  const said = messages.map(spoken).filter((message) => message.content);
  if (!works) return said;
  const done = messages.map(worked).filter((message) => message.content || message.tool_calls || message.toolCallId);
  return JSON.stringify(done).length <= MAX_WORK ? done : said;
}

function spoken(message) {
  const { role, content, timestamp, provenance, __openclaw } = message ?? {};
  if (role !== "user" && role !== "assistant") return {};
  const origin = { senderIsOwner: __openclaw?.senderIsOwner, provenance: provenance?.kind && { kind: provenance.kind } };
  return { role, content: textOf(content).slice(0, MAX_TEXT), timestamp, ...origin };
}

function worked(message) {
  const { role, content, toolCallId, isError, details } = message ?? {};
  if (role === "toolResult" && toolCallId)
    return { role, toolCallId, content: textOf(content).slice(0, MAX_TEXT), isError, details: { exitCode: details?.exitCode } };
  const calls = role === "assistant" && Array.isArray(content) ? content.filter((part) => part?.type === "toolCall") : [];
  const tool_calls = calls.map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  return tool_calls.length ? { ...spoken(message), tool_calls } : spoken(message);
}

function markOf(message) {
  const text = textOf(message?.content);
  return message && `${message.role} ${text.length} ${text.slice(-100)}`;
}
