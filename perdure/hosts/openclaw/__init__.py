"""OpenClaw: a JavaScript entry in the gateway, and this side of its pipe."""
