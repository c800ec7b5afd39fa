// A host of one process: registers the entry, then does what the lines on stdin say, one answer a line.
// usage: node openclaw_entry.mjs ENTRY PYTHON HOME RECALL_MS
import { createInterface } from "node:readline";

const [entry, python, home, recallMs] = process.argv.slice(2);
const hooks = new Map();
const tools = new Map();
const warnings = [];
const completions = [];
let answers = [];
let service;
let capability;
let current = {};
const api = {
  pluginConfig: { python, home, embedder: "none", opening_tokens: 0, recallTimeoutMs: Number(recallMs), ...JSON.parse(process.env.OWN_CONFIG ?? "{}") },
  config: {},
  registrationMode: "full",
  runtime: { config: { current: () => current }, llm: { complete } },
  logger: { warn: (text) => warnings.push(text), info: () => {} },
  on: (name, handler) => hooks.set(name, handler),
  registerTool: (factory, { name }) => tools.set(name, factory),
  registerMemoryCapability: (given) => (capability = given),
  registerService: (given) => (service = given),
  registerCli: () => {},
};

// The host's own model: it says what it is told to, fails as it is told to, or thinks until it is told to stop.
async function complete({ signal, ...asked }) {
  completions.push(asked);
  const answer = answers.shift() ?? {};
  if (answer.hangs) await new Promise((_, reject) => signal.addEventListener("abort", () => (completions.push("aborted"), reject(signal.reason))));
  if (answer.code) throw Object.assign(new Error(answer.message), { code: answer.code });
  return { text: JSON.stringify({ operations: answer.operations ?? [{ op: "nothing" }] }), usage: { totalTokens: 321 } };
}

const plugin = (await import(entry)).default;
plugin.register(api);
// The host registers it once more, only to look at it.
plugin.register({ ...api, registrationMode: "discovery", runtime: { config: api.runtime.config } });
const bridge = globalThis[Symbol.for("perdure.bridge")];

const deeds = {
  hook: async ({ hook, event, ctx }) => (hooks.has(hook) ? ((await hooks.get(hook)(event, ctx)) ?? null) : "not registered"),
  tool: async ({ name, params, ctx }) => tools.get(name)(ctx).execute("call_1", params),
  config: async ({ config }) => (current = config),
  pid: async () => bridge.child?.pid ?? null,
  answer: async (given) => (answers = given.answers),
  completions: async () => completions,
  sent: async () => bridge.sent,
  warnings: async () => warnings,
  flush: async (asked) => capability.flushPlanResolver(asked),
  prompt: async () => capability.promptBuilder({ availableTools: new Set(tools.keys()) }),
  ready: async () => bridge.attempt("ping", {}, 60000),
  stop: async () => service.stop(),
};

// How many messages each turn took through the pipe.
bridge.sent = [];
const send = bridge.send.bind(bridge);
bridge.send = (method, params, ...rest) => {
  if (params.messages) bridge.sent.push(params.messages.length);
  return send(method, params, ...rest);
};

for await (const line of createInterface({ input: process.stdin })) {
  const { deed, ...values } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify((await deeds[deed](values)) ?? null)}\n`);
}
