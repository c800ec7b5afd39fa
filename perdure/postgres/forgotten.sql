-- Marks of what was forgotten. What was forgotten before this step has none.

CREATE TABLE forgotten (
    seq bigint NOT NULL DEFAULT next_number('forgotten'),
    fact_id text NOT NULL, scope text NOT NULL, scope_target text NOT NULL, at double precision NOT NULL,
    marks text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, seq), UNIQUE (tenant, fact_id)
);
ALTER TABLE forgotten ENABLE ROW LEVEL SECURITY;
ALTER TABLE forgotten FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON forgotten USING (tenant = current_setting('perdure.tenant', true))
    WITH CHECK (tenant = current_setting('perdure.tenant', true));
