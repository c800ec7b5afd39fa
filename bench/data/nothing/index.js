export default { id: "nothing", name: "Nothing", description: "Does nothing.", register(api) {
  api.on("before_prompt_build", async () => undefined); api.on("agent_end", async () => undefined); } };
