"""`python -m perdure`."""

import sys

if sys.argv[1:2] == ["hook"]:
    # A host waits for it in every turn: nothing of the command line is imported.
    from perdure.service.client import main as hook

    hook(sys.argv[2:])
else:
    from perdure.cli.main import main

    main()
