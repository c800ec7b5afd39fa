-- What is asked for when a session begins, without a walk: what is pinned, and what it was given before.

CREATE INDEX facts_pinned ON facts (tenant, seq) WHERE pinned = 1;
CREATE INDEX receipts_session ON receipts (tenant, session, scope, at);
