-- Short texts that say in which situations a memory matters. One that was taken away stays, for undo.

CREATE TABLE triggers (
    id text NOT NULL, fact_id text NOT NULL, text text NOT NULL, origin text NOT NULL,
    created_at double precision NOT NULL, removed_at double precision,
    rowid bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, fact_id) REFERENCES facts (tenant, id) ON DELETE CASCADE
);
CREATE INDEX triggers_fact ON triggers (tenant, fact_id);
CREATE TABLE trigger_vectors (
    trigger_id text NOT NULL, embedding_id text NOT NULL, vector bytea NOT NULL,
    rowid bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, trigger_id, embedding_id),
    FOREIGN KEY (tenant, trigger_id) REFERENCES triggers (tenant, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant, embedding_id) REFERENCES embeddings (tenant, id)
);
ALTER TABLE triggers ENABLE ROW LEVEL SECURITY;
ALTER TABLE triggers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON triggers USING (tenant = current_setting('perdure.tenant', true))
    WITH CHECK (tenant = current_setting('perdure.tenant', true));
ALTER TABLE trigger_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE trigger_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON trigger_vectors USING (tenant = current_setting('perdure.tenant', true))
    WITH CHECK (tenant = current_setting('perdure.tenant', true));
