"""`python -m perdure.hosts.openclaw`: what the gateway starts."""

from perdure.hosts.openclaw.server import main

main()
