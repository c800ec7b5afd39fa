// OpenClaw's entry of perdure: hooks and tools are answered by a Python child, see bridge.js.
import { readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { Bridge, environment, keep } from "./bridge.js";

const TOOL_MS = 20000;
const SHORT_MS = 1500;
// OpenClaw itself keeps no more than this part of a model's window free.
const MOST_RESERVED = 0.25;
const AWAY = { type: "text", text: "Memory is not available at the moment. Continue without it; it will come back on its own." };
const GENERATED = JSON.parse(readFileSync(new URL("./generated.json", import.meta.url), "utf8"));
const OF_SESSION = ["agentId", "sessionKey", "sessionId", "workspaceDir", "activeProjectKeys", "senderIsOwner", "requesterSenderId"];

// The host calls `register` several times in a process: all of them share one child.
const bridge = (globalThis[Symbol.for("perdure.bridge")] ??= Object.assign(new Bridge(), { sessions: new Map() }));

const picked = (values, keys) =>
  Object.fromEntries(keys.filter((key) => values?.[key] !== undefined).map((key) => [key, values[key]]));

// Only plain values of a context cross the pipe: it may hold functions. Some hooks name no more than the session's key,
// and tools alone learn who writes, so what was told of a session holds until it is told anew, or somebody else writes.
function plain(ctx) {
  const session = { ...bridge.sessions.get(ctx?.sessionKey), ...picked(ctx, OF_SESSION) };
  if (session.sessionKey) keep(bridge.sessions, session.sessionKey, session);
  const known = !ctx?.senderId || ctx.senderId === session.requesterSenderId;
  const inputProvenance = ctx?.inputProvenance?.kind && { kind: ctx.inputProvenance.kind };
  const host = bridge.hostConfig();
  const ownerIsNamed = Boolean(host?.commands?.ownerAllowFrom?.length);
  const timezone = host?.agents?.defaults?.userTimezone;
  const who = { senderIsOwner: known ? session.senderIsOwner : null, ownerIsNamed, inputProvenance, timezone };
  return { ...session, ...picked(ctx, ["runId", "trigger"]), ...who };
}

function flushPlan({ flush: own = {} }, { cfg, contextWindowTokens, nowMs }) {
  const host = cfg?.agents?.defaults?.compaction?.memoryFlush;
  if (own.enabled === false || host?.enabled === false) return null;
  // Swedish dates have the ISO form.
  const date = new Date(nowMs ?? Date.now()).toLocaleDateString("sv");
  const relativePath = `memory/${date}.md`;
  const filled = (text) => text.replaceAll("{date}", date).replaceAll("{path}", relativePath);
  const plan = GENERATED.flush;
  const window = contextWindowTokens || Infinity;
  const reserve = Math.min(own.reserveTokens ?? plan.reserveTokensFloor, Math.floor(window * MOST_RESERVED));
  return {
    ...plan,
    softThresholdTokens: Math.min(own.softTokens ?? plan.softThresholdTokens, Math.floor((window - reserve) / 2)),
    reserveTokensFloor: reserve,
    model: host?.model?.trim() || undefined,
    prompt: filled(own.prompt || plan.prompt),
    systemPrompt: filled(own.systemPrompt || plan.systemPrompt),
    relativePath,
  };
}

// Only the model of the agent that was spoken to is asked; that a plugin may name an agent, the owner must allow.
const lends = (api) => () =>
  Boolean(api.runtime?.llm?.complete && bridge.hostConfig()?.plugins?.entries?.perdure?.llm?.allowAgentIdOverride);

// Without a session, a hook or a tool: a model that calls one is refused by OpenClaw.
const complete = (api) => async ({ agent, system, prompt, tokens, timeoutMs }, signal) => {
  const { text, usage } = await api.runtime.llm.complete({
    messages: [{ role: "user", content: prompt }],
    systemPrompt: system,
    agentId: agent,
    maxTokens: tokens,
    purpose: "perdure.librarian",
    signal,
    execution: { mode: "isolated-agent-runtime", timeoutMs },
  });
  return { text, tokens: usage?.totalTokens };
};

function registerHooks(api, { recallTimeoutMs: recallMs = 3000, captureTimeoutMs: captureMs = 10000 }) {
  api.on("before_prompt_build", ({ prompt, currentUserMessage }, ctx) => {
    return bridge.attempt("before_prompt_build", { event: { prompt, currentUserMessage }, ctx: plain(ctx) }, recallMs);
  }, { timeoutMs: recallMs + 500 });
  // Not waited for: OpenClaw has more to do before it builds the prompt, and the child reads it meanwhile.
  api.on("before_model_resolve", ({ prompt }, ctx) => void bridge.attempt("foresee", { event: { prompt }, ctx: plain(ctx) }, SHORT_MS));
  // Waited for, so that a process of one turn does not end before the child has it on disk.
  for (const hook of ["agent_end", "before_compaction", "before_reset"])
    api.on(hook, (event, ctx) => bridge.history(hook, event, plain(ctx), captureMs), { timeoutMs: captureMs + 500 });
  for (const hook of ["session_start", "session_end"])
    api.on(hook, (event, ctx) => bridge.attempt(hook, { ctx: plain({ ...event, ...ctx }) }, SHORT_MS));
}

function registerTools(api) {
  for (const tool of GENERATED.tools)
    api.registerTool((ctx) => {
      const { senderIsOwner = null, requesterSenderId = null } = ctx;
      const known = plain({ ...ctx, senderIsOwner, requesterSenderId });
      const execute = async (id, given, signal) =>
        (await bridge.attempt("tool", { name: tool.name, arguments: given ?? {}, ctx: known }, TOOL_MS, signal)) ??
        { content: [AWAY], details: { error: "unavailable" } };
      return { ...tool, label: tool.name, catalogMode: "direct-only", execute };
    }, { name: tool.name });
}

function registerCli(api, config) {
  const description = "Long-term memory: perdure's commands.";
  api.registerCli(({ program }) => {
    const command = program.command("perdure").description(description);
    command.helpOption(false).allowUnknownOption().allowExcessArguments().argument("[args...]");
    command.action((args) => {
      const env = { ...environment(config), ...(config.home ? { PERDURE_HOME: config.home } : {}) };
      const done = spawnSync(config.python || "python3", ["-P", "-m", "perdure", ...args], { stdio: "inherit", env });
      if (done.error) console.error(`perdure: ${config.python}: ${done.error.message}`);
      process.exitCode = done.status ?? 1;
    });
  }, { commands: ["perdure"], descriptors: [{ name: "perdure", description, hasSubcommands: true }] });
}

export default {
  id: "perdure",
  name: "Perdure memory",
  description: "Long-term memory that just works: local, no key, no network, no LLM.",
  register(api) {
    const config = api.pluginConfig ?? {};
    // Asked anew each time: the owner may be named while the host runs, and no copy must outlive that.
    Object.assign(bridge, { config, logger: api.logger, hostConfig: () => api.runtime?.config?.current?.() ?? api.config });
    // What is registered only to be looked at is not there for long.
    if (api.registrationMode === "full") Object.assign(bridge, { lends: lends(api), complete: complete(api) });
    registerHooks(api, config);
    registerTools(api);
    registerCli(api, config);
    api.registerMemoryCapability({
      promptBuilder: ({ availableTools }) =>
        config.promptSections !== false && availableTools.has("memory_recall") ? GENERATED.prompt : [],
      flushPlanResolver: (asked) => flushPlan(config, asked),
      publicArtifacts: { listArtifacts: async () => [] },
    });
    api.registerService({ id: "perdure", start: () => void bridge.attempt("ping", {}, TOOL_MS), stop: () => bridge.stop() });
  },
};
