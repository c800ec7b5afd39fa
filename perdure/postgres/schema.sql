-- The schema in PostgreSQL. Every table has its tenant, and shows no row of another.

CREATE TABLE perdure_schema (version integer NOT NULL);
INSERT INTO perdure_schema VALUES (0);

CREATE FUNCTION instr(whole text, part text) RETURNS int LANGUAGE sql IMMUTABLE AS
    $$ SELECT position(part IN whole) $$;
CREATE FUNCTION hex(bytes bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(encode(bytes, 'hex')) $$;
CREATE FUNCTION json_each(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE AS
    $$ SELECT jsonb_array_elements_text(list::jsonb) $$;
CREATE FUNCTION json_extract(object text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT object::jsonb #>> string_to_array(substr(path, 3), '.') $$;
CREATE FUNCTION json_set(object text, path text, value anyelement) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT jsonb_set(object::jsonb, string_to_array(substr(path, 3), '.'), to_jsonb(value))::text $$;
CREATE FUNCTION merged(of jsonb, with_ jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE name text; value jsonb;
BEGIN
    IF jsonb_typeof(with_) <> 'object' THEN RETURN with_; END IF;
    IF of IS NULL OR jsonb_typeof(of) <> 'object' THEN of := '{}'; END IF;
    FOR name, value IN SELECT * FROM jsonb_each(with_) LOOP
        of := CASE WHEN value = 'null' THEN of - name
              ELSE of || jsonb_build_object(name, merged(of -> name, value)) END;
    END LOOP;
    RETURN of;
END $$;
CREATE FUNCTION json_patch(of text, with_ text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT merged(of::jsonb, with_::jsonb)::text $$;
CREATE FUNCTION json_grouped(held jsonb, more anyelement) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    $$ SELECT held || jsonb_build_array(more) $$;
CREATE FUNCTION as_text(held jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT held::text $$;
CREATE AGGREGATE json_group_array(anyelement) (
    SFUNC = json_grouped, STYPE = jsonb, INITCOND = '[]', FINALFUNC = as_text
);

-- Numbers without gaps and in the order of commits: whoever writes holds the tenant's lock until then.
CREATE TABLE counters (
    name text NOT NULL, value bigint NOT NULL, tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, name)
);
-- By this name the store asks how far a sequence has come.
CREATE VIEW sqlite_sequence WITH (security_invoker = true) AS SELECT name, value AS seq FROM counters;
CREATE FUNCTION next_number(of text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE made bigint;
BEGIN
    INSERT INTO counters (name, value) VALUES (of, 1)
        ON CONFLICT (tenant, name) DO UPDATE SET value = counters.value + 1 RETURNING value INTO made;
    PERFORM set_config('perdure.inserted', made::text, true);
    RETURN made;
END $$;

CREATE TABLE meta (
    key text NOT NULL, value text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, key)
);
CREATE TABLE facts (
    seq bigint NOT NULL DEFAULT next_number('facts'),
    id text NOT NULL,
    text text NOT NULL,
    why text,
    category text NOT NULL DEFAULT 'other',
    importance double precision NOT NULL DEFAULT 0.5,
    entity text,
    key text,
    value text,
    entity_folded text,
    key_folded text,
    source text NOT NULL DEFAULT 'conversation',
    channel text NOT NULL DEFAULT 'unknown',
    created_at double precision NOT NULL,
    source_date double precision,
    decay_class text NOT NULL DEFAULT 'stable',
    expires_at double precision,
    decay_freeze_until double precision,
    last_confirmed_at double precision,
    confidence double precision NOT NULL DEFAULT 1.0,
    summary text,
    tags text NOT NULL DEFAULT '',
    preserve_tags integer NOT NULL DEFAULT 0,
    normalized_hash text NOT NULL,
    recall_count integer NOT NULL DEFAULT 0,
    access_count integer NOT NULL DEFAULT 0,
    injected_count integer NOT NULL DEFAULT 0,
    reinforced_count integer NOT NULL DEFAULT 0,
    last_accessed double precision,
    valid_from double precision,
    valid_until double precision,
    superseded_at double precision,
    superseded_by text,
    supersedes_id text,
    forgotten_at double precision,
    tier text NOT NULL DEFAULT 'warm',
    scope text NOT NULL DEFAULT 'global',
    scope_target text NOT NULL DEFAULT '',
    embedding_model text,
    provenance_session text,
    source_turn text,
    extraction_method text,
    extraction_confidence double precision NOT NULL DEFAULT 1.0,
    pinned integer NOT NULL DEFAULT 0,
    review_state text NOT NULL DEFAULT 'approved',
    metadata text NOT NULL DEFAULT '{}',
    change_seq bigint NOT NULL DEFAULT 0,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);
CREATE INDEX facts_entity ON facts (tenant, entity_folded, key_folded);
CREATE INDEX facts_created_at ON facts (tenant, created_at);
CREATE INDEX facts_expires_at ON facts (tenant, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX facts_tags ON facts (tenant, seq) WHERE tags <> '';
CREATE INDEX facts_hash ON facts (tenant, normalized_hash);
CREATE INDEX facts_scope ON facts (tenant, scope, scope_target);
CREATE INDEX facts_said ON facts (tenant, coalesce(source_date, created_at), seq);
CREATE INDEX facts_waiting ON facts (tenant, seq) WHERE review_state = 'pending';
CREATE TABLE facts_fts (
    rowid bigint NOT NULL, terms tsvector NOT NULL, words integer NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, rowid)
);
CREATE TABLE facts_terms (
    term text NOT NULL, doc bigint NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, term)
);
-- Which facts have a word. Row-level security lets no condition use an index whose operator might tell of other rows,
-- and that of words in a tsvector is such a one: its index was never used.
CREATE TABLE facts_words (
    term text NOT NULL, rowid bigint NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, term, rowid)
);
CREATE FUNCTION count_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM facts_words WHERE term = ANY (tsvector_to_array(OLD.terms)) AND rowid = OLD.rowid;
        UPDATE facts_terms SET doc = doc - 1 WHERE term = ANY (tsvector_to_array(OLD.terms));
        DELETE FROM facts_terms WHERE term = ANY (tsvector_to_array(OLD.terms)) AND doc < 1;
        UPDATE counters SET value = value - 1 WHERE name = 'rows of words';
        UPDATE counters SET value = value - OLD.words WHERE name = 'words';
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO facts_words (term, rowid) SELECT unnest(tsvector_to_array(NEW.terms)), NEW.rowid;
        INSERT INTO facts_terms (term, doc) SELECT unnest(tsvector_to_array(NEW.terms)), 1
            ON CONFLICT (tenant, term) DO UPDATE SET doc = facts_terms.doc + 1;
        INSERT INTO counters (name, value) VALUES ('rows of words', 1), ('words', NEW.words)
            ON CONFLICT (tenant, name) DO UPDATE SET value = counters.value + excluded.value;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION times(terms tsvector, word text) RETURNS double precision LANGUAGE sql IMMUTABLE AS
    $$ SELECT coalesce((SELECT cardinality(positions) FROM unnest(terms) WHERE lexeme = word), 0) $$;
CREATE TRIGGER facts_fts_counted AFTER INSERT OR UPDATE OR DELETE ON facts_fts
    FOR EACH ROW EXECUTE FUNCTION count_terms();
CREATE TABLE memory_links (
    id text NOT NULL,
    source_fact_id text NOT NULL,
    target_fact_id text NOT NULL,
    link_type text NOT NULL,
    strength double precision NOT NULL DEFAULT 1.0 CHECK (strength BETWEEN 0 AND 1),
    created_at double precision NOT NULL,
    rowid bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, source_fact_id, target_fact_id, link_type),
    FOREIGN KEY (tenant, source_fact_id) REFERENCES facts (tenant, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant, target_fact_id) REFERENCES facts (tenant, id) ON DELETE CASCADE
);
CREATE INDEX links_source ON memory_links (tenant, source_fact_id, link_type);
CREATE INDEX links_target ON memory_links (tenant, target_fact_id);
CREATE TABLE embeddings (
    id text NOT NULL, identity text NOT NULL, dims integer NOT NULL, state text NOT NULL,
    rowid bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, id)
);
CREATE TABLE vectors (
    fact_id text NOT NULL, embedding_id text NOT NULL, vector bytea NOT NULL,
    rowid bigint NOT NULL DEFAULT next_number('vectors'),
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    crowd text NOT NULL,
    PRIMARY KEY (tenant, fact_id, embedding_id),
    FOREIGN KEY (tenant, fact_id) REFERENCES facts (tenant, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant, embedding_id) REFERENCES embeddings (tenant, id)
);
CREATE INDEX vectors_rowid ON vectors (tenant, rowid);
CREATE FUNCTION renumber() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.rowid := next_number('vectors');
    RETURN NEW;
END $$;
CREATE TRIGGER vectors_renumbered BEFORE UPDATE OF vector ON vectors FOR EACH ROW EXECUTE FUNCTION renumber();
-- In whose crowd a vector is: by that a large scope has a graph of its own. Names are of any form, this has one form.
CREATE FUNCTION crowd_of(tenant text, scope text, target text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT left(encode(sha256(convert_to(tenant || E'\n' || scope || E'\n' || target, 'UTF8')), 'hex'), 16) $$;
CREATE FUNCTION join_crowd() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT crowd_of(f.tenant, f.scope, f.scope_target) INTO NEW.crowd FROM facts f
        WHERE f.tenant = NEW.tenant AND f.id = NEW.fact_id;
    RETURN NEW;
END $$;
CREATE TRIGGER vectors_crowd BEFORE INSERT ON vectors FOR EACH ROW EXECUTE FUNCTION join_crowd();
CREATE FUNCTION change_crowd() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vectors SET crowd = crowd_of(NEW.tenant, NEW.scope, NEW.scope_target)
        WHERE tenant = NEW.tenant AND fact_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER facts_crowd AFTER UPDATE OF scope, scope_target ON facts FOR EACH ROW
    WHEN ((OLD.scope, OLD.scope_target) IS DISTINCT FROM (NEW.scope, NEW.scope_target)) EXECUTE FUNCTION change_crowd();
CREATE TABLE journal (
    seq bigint NOT NULL DEFAULT next_number('journal'),
    at double precision NOT NULL,
    action text NOT NULL,
    fact_id text NOT NULL,
    other_id text,
    channel text NOT NULL,
    host text NOT NULL,
    session text,
    batch text NOT NULL,
    detail text NOT NULL DEFAULT '{}',
    seal bytea,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX journal_fact ON journal (tenant, fact_id);
CREATE INDEX journal_batch ON journal (tenant, batch);
CREATE INDEX journal_unsealed ON journal (tenant, seq) WHERE seal IS NULL;
CREATE INDEX journal_undone ON journal (tenant, (json_extract(detail, '$.undoes'))) WHERE action = 'undo';
CREATE TABLE outbox (
    seq bigint NOT NULL DEFAULT next_number('outbox'), fact_id text NOT NULL, queued_at double precision NOT NULL,
    attempts integer NOT NULL DEFAULT 0, parked text,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, seq)
);
CREATE TABLE inbox_done (
    entry_id text NOT NULL, at double precision NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, entry_id)
);
CREATE TABLE inbox_parked (
    entry_id text NOT NULL, at double precision NOT NULL, error text NOT NULL, entry text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, entry_id)
);
CREATE TABLE cursors (
    session text NOT NULL, tail text NOT NULL, at double precision NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, session)
);
CREATE TABLE receipts (
    id text NOT NULL, at double precision NOT NULL, session text, scope text NOT NULL, body text NOT NULL,
    details bytea, rowid bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, id)
);
CREATE INDEX receipts_at ON receipts (tenant, at);
CREATE TABLE tombstones (
    key text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, key)
);
CREATE TABLE purges (
    id text NOT NULL, asked_at double precision NOT NULL, state text NOT NULL, detail text NOT NULL DEFAULT '{}',
    needles bytea, tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, id)
);
CREATE TABLE seals (
    id text NOT NULL, seal bytea NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, id)
);
CREATE TABLE file_roots (
    scope text NOT NULL, scope_target text NOT NULL, kind text NOT NULL, path text NOT NULL, pattern text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, scope, scope_target, kind, path)
);
CREATE TABLE proposals (
    id text NOT NULL, fact_id text NOT NULL, evidence text NOT NULL, state text NOT NULL,
    made_at double precision NOT NULL, expires_at double precision NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, fact_id) REFERENCES facts (tenant, id) ON DELETE CASCADE
);
CREATE INDEX proposals_fact ON proposals (tenant, fact_id);
CREATE TABLE jobs (
    name text NOT NULL, last_run double precision, next_run double precision NOT NULL, took double precision,
    result text, failures integer NOT NULL DEFAULT 0, state text NOT NULL DEFAULT 'waiting',
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, name)
);

-- Whose turn it is to do what only one may do; the number tells a former holder's writes from the present one's.
CREATE TABLE leases (
    name text NOT NULL, holder text NOT NULL, fence bigint NOT NULL, ends timestamptz NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, name)
);
-- Turns that were acknowledged by the database.
CREATE TABLE inbox (
    entry_id text NOT NULL, machine text NOT NULL, at double precision NOT NULL, entry text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, entry_id)
);
-- What was said, and what changed: of each conversation the number of its last change.
CREATE TABLE conversations (
    scope text NOT NULL, scope_target text NOT NULL, session text NOT NULL, at double precision NOT NULL,
    change bigint NOT NULL DEFAULT next_number('conversations'),
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true),
    PRIMARY KEY (tenant, scope, scope_target, session)
);
CREATE INDEX conversations_change ON conversations (tenant, change);
CREATE TABLE said (
    place bigint NOT NULL DEFAULT next_number('said'), scope text NOT NULL, scope_target text NOT NULL,
    session text NOT NULL, line text NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perdure.tenant', true), PRIMARY KEY (tenant, place),
    FOREIGN KEY (tenant, scope, scope_target, session)
        REFERENCES conversations (tenant, scope, scope_target, session) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX said_session ON said (tenant, scope, scope_target, session, place);

-- The wall between tenants.
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
        WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenants ON %I USING (tenant = current_setting(''perdure.tenant'', true))'
            ' WITH CHECK (tenant = current_setting(''perdure.tenant'', true))', name);
    END LOOP;
END $$;
