"""Files and conversations: searched together, each passage with where it stands."""

from __future__ import annotations

from starlette.responses import Response

from perdure.ui.page import Call, show


def files(call: Call) -> Response:
    """Show what a search of files and conversations brings, or what is searched."""
    query = call.asked("q")
    answer = call.memory.files.search(query, max_results=20) if query else None
    status = None if query else call.memory.files.status()
    return call.render("files.html", query=query, answer=answer, status=status)


ROUTES = [show("/files", files)]
