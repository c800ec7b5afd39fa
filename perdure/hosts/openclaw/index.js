// OpenClaw's entry of perdure: hooks and tools are answered by a Python child, see bridge.js.
import { readFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { Bridge, environment } from "./bridge.js";

const ID = "perdure";
const TOOL_MS = 20000;
const SHORT_MS = 1500;
const UNAVAILABLE = "Memory is not available at the moment. Go on without it; it comes back by itself.";
const GENERATED = JSON.parse(readFileSync(new URL("./generated.json", import.meta.url), "utf8"));

// Only plain values of a context cross the pipe: it may hold functions.
function plain(ctx) {
  const keys = ["agentId", "sessionKey", "sessionId", "workspaceDir", "activeProjectKeys", "runId", "trigger", "senderIsOwner"];
  const found = Object.fromEntries(keys.filter((key) => ctx?.[key] !== undefined).map((key) => [key, ctx[key]]));
  if (ctx?.inputProvenance?.kind) found.inputProvenance = { kind: ctx.inputProvenance.kind };
  return found;
}

function flushPlan(config, nowMs) {
  const plan = GENERATED.flush;
  if (config.flushEnabled === false) return null;
  const now = new Date(nowMs ?? Date.now());
  const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  const relativePath = `memory/${day}.md`;
  const filled = (text) => text.replaceAll("{date}", day).replaceAll("{path}", relativePath);
  return {
    softThresholdTokens: config.flushSoftTokens ?? plan.softThresholdTokens,
    reserveTokensFloor: config.flushReserveTokens ?? plan.reserveTokensFloor,
    forceFlushTranscriptBytes: plan.forceFlushTranscriptBytes,
    prompt: filled(config.flushPrompt || plan.prompt),
    systemPrompt: filled(config.flushSystemPrompt || plan.systemPrompt),
    relativePath,
  };
}

// The host calls `register` several times in a process: all of them share one child.
const bridge = (globalThis[Symbol.for("perdure.bridge")] ??= new Bridge());

function registerHooks(api, config) {
  const recallMs = config.recallTimeoutMs ?? 3000;
  const captureMs = config.captureTimeoutMs ?? 10000;
  api.on("before_prompt_build", async (event, ctx) => {
    const { prompt, currentUserMessage } = event;
    const params = { event: { prompt, currentUserMessage }, ctx: plain(ctx) };
    return await bridge.attempt("before_prompt_build", params, recallMs);
  }, { timeoutMs: recallMs + 500 });
  for (const hook of ["agent_end", "before_compaction", "before_reset"]) {
    // Waited for, so that a process of one turn does not end before the child has it on disk.
    api.on(hook, (event, ctx) => bridge.history(hook, event, plain(ctx), captureMs), { timeoutMs: captureMs + 500 });
  }
  for (const hook of ["session_start", "session_end"]) {
    api.on(hook, async (event, ctx) => {
      await bridge.attempt(hook, { ctx: plain({ ...event, ...ctx }) }, SHORT_MS);
    });
  }
}

function registerTools(api) {
  for (const tool of GENERATED.tools) {
    api.registerTool((ctx) => ({
      ...tool,
      label: tool.name,
      catalogMode: "direct-only",
      async execute(toolCallId, params, signal) {
        const call = { name: tool.name, arguments: params ?? {}, ctx: plain(ctx) };
        const unavailable = { content: [{ type: "text", text: UNAVAILABLE }], details: { error: "unavailable" } };
        return (await bridge.attempt("tool", call, TOOL_MS, signal)) ?? unavailable;
      },
    }), { name: tool.name });
  }
}

function registerCli(api, config) {
  const description = "Long-term memory: the commands of perdure.";
  api.registerCli(({ program }) => {
    const command = program.command("perdure").description(description);
    command.helpOption(false).allowUnknownOption().allowExcessArguments().argument("[args...]");
    command.action((args) => new Promise((resolve) => {
      const env = { ...environment(config), ...(config.home ? { PERDURE_HOME: config.home } : {}) };
      const child = spawn(config.python || "python3", ["-P", "-m", "perdure", ...args], { stdio: "inherit", env });
      child.once("error", (error) => resolve(console.error(`${ID}: ${config.python}: ${error.message}`)));
      child.once("exit", (code) => resolve((process.exitCode = code ?? 1)));
    }));
  }, { commands: ["perdure"], descriptors: [{ name: "perdure", description, hasSubcommands: true }] });
}

export default {
  id: ID,
  name: "Perdure memory",
  description: "Long-term memory that just works: local, no key, no network, no LLM.",
  register(api) {
    const config = api.pluginConfig ?? {};
    bridge.configure(config, api.logger);
    registerHooks(api, config);
    registerTools(api);
    registerCli(api, config);
    api.registerMemoryCapability({
      promptBuilder: ({ availableTools }) =>
        config.promptSections !== false && availableTools.has("memory_recall") ? GENERATED.prompt : [],
      flushPlanResolver: ({ nowMs }) => flushPlan(config, nowMs),
      publicArtifacts: { listArtifacts: async () => [] },
    });
    api.registerService({
      id: ID,
      start: () => void bridge.start().catch((error) => bridge.warn(error.message)),
      stop: () => bridge.stop(),
    });
  },
};
