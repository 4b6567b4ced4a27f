"""The SQL of `PostgresStore`. `{s}` is the schema.

A run is one row. Its `last` is the number of its latest record: an append increases it in the same statement that
inserts the records, and only if epoch and number are as expected. So the row is the lock, and one statement suffices.
All text is ASCII: other characters are escaped as in JSON, for databases of any encoding, and for NUL.
"""

VERSION = 1
"""The version of the tables. Every released version must stay readable; see `tests/journal/versions`."""

TABLES = """
CREATE TABLE {s}.about (version bigint NOT NULL);
INSERT INTO {s}.about VALUES (1);
CREATE TABLE {s}.runs (
    run text PRIMARY KEY,
    info text NOT NULL,
    of_user text NOT NULL,
    of_session text NOT NULL,
    status text NOT NULL,
    last bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    owner text NOT NULL DEFAULT '',
    claimed float8 NOT NULL DEFAULT 0,
    until float8 NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX runs_of_user ON {s}.runs (of_user);
CREATE INDEX runs_of_session ON {s}.runs (of_session);
CREATE INDEX runs_of_status ON {s}.runs (status);
CREATE TABLE {s}.lines (run text, seq bigint, line text NOT NULL, PRIMARY KEY (run, seq));
CREATE TABLE {s}.blobs (run text, digest text, data bytea NOT NULL, PRIMARY KEY (run, digest));
"""

# A server that is configured to wait for its replicas keeps doing so.
SESSION = {
    'full': """
        SELECT set_config('default_transaction_isolation', 'read committed', false), set_config('synchronous_commit',
            CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit')
            END, false)""",
    'normal': """
        SELECT set_config('default_transaction_isolation', 'read committed', false),
            set_config('synchronous_commit', 'off', false)""",
}

SYNC = 'SET LOCAL synchronous_commit = on'

# One transaction creates the tables; the others wait for it.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('habilis journal ' || %s, 0))"
# (They read the catalogue itself, because `to_regclass` may use an outdated cache.)
HAS_SCHEMA = 'SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s'
HAS_TABLES = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'about'"
MAKE_SCHEMA = 'CREATE SCHEMA {s}'
READ_VERSION = 'SELECT max(version) FROM {s}.about'

# Inserts the new lines and blobs of the row `held`, of which `after` is the number of its latest record before.
_WRITE = """written AS (
    INSERT INTO {s}.lines (run, seq, line)
    SELECT held.run, held.after + new.n, new.line FROM held, unnest(%(lines)b::text[]) WITH ORDINALITY AS new (line, n)
), kept AS (
    INSERT INTO {s}.blobs (run, digest, data)
    SELECT held.run, new.digest, new.data FROM held, unnest(%(digests)b::text[], %(blobs)b::bytea[])
        AS new (digest, data)
    ON CONFLICT DO NOTHING
)
SELECT 1 FROM held"""

CREATE = f"""
WITH held AS (
    INSERT INTO {{s}}.runs (run, info, of_user, of_session, status, last)
    VALUES (%(run)s, %(info)s, %(user)s, %(session)s, %(status)s, %(count)s)
    ON CONFLICT DO NOTHING RETURNING run, 0 AS after
), {_WRITE}"""

# Not `now()`: it would be outdated if the statement had to wait for the row.
_NOW = 'extract(epoch FROM clock_timestamp())::float8'
_MINE = '(owner = %(owner)s AND until <> 0)'
CLAIM = f"""
UPDATE {{s}}.runs SET
    epoch = CASE WHEN {_MINE} THEN epoch ELSE epoch + 1 END,
    owner = %(owner)s, claimed = {_NOW}, until = {_NOW} + %(seconds)s::float8
WHERE run = %(run)s AND (
    {_MINE} OR epoch = %(over)s::bigint OR (%(over)s::bigint IS NULL AND NOT (claimed <= {_NOW} AND {_NOW} < until))
)
RETURNING epoch, until"""

RELEASE = """
WITH released AS (UPDATE {s}.runs SET until = 0 WHERE run = %(run)s AND epoch = %(epoch)s)
SELECT 1 FROM {s}.runs WHERE run = %(run)s"""

APPEND_LINE = """
WITH held AS (
    UPDATE {s}.runs SET last = %(seq)s WHERE run = %(run)s AND epoch = %(epoch)s AND last = %(seq)s - 1 RETURNING run
)
INSERT INTO {s}.lines (run, seq, line) SELECT run, %(seq)s, %(line)s FROM held RETURNING 1"""

APPEND = f"""
WITH held AS (
    UPDATE {{s}}.runs SET
        last = last + %(count)s,
        info = coalesce(%(info)s::text, info),
        of_user = coalesce(%(user)s::text, of_user),
        of_session = coalesce(%(session)s::text, of_session),
        status = coalesce(%(status)s::text, status)
    WHERE run = %(run)s AND epoch = %(epoch)s AND last = coalesce(%(after)s::bigint, last)
    RETURNING run, last - %(count)s AS after
), {_WRITE}"""

LOCK_RUN = 'SELECT epoch, last FROM {s}.runs WHERE run = %s FOR UPDATE'
LINES = 'SELECT line FROM {s}.lines WHERE run = %s AND seq > %s ORDER BY seq'
BLOB = 'SELECT data FROM {s}.blobs WHERE run = %s AND digest = %s'
INFO = 'SELECT info FROM {s}.runs WHERE run = %s'
LEASE = 'SELECT epoch, owner, until FROM {s}.runs WHERE run = %s'
RUNS = 'SELECT run, info FROM {s}.runs'

# Not as JSON: a title may have a NUL, which Postgres refuses. No text in JSON contains a key with its quotes and colon.
_COUNTED = """
WITH counted AS (
    SELECT status, info, coalesce(substring(info FROM '"ended":"([^"]*)"'), '') AS ended,
        coalesce(substring(info FROM '"cost":([-+.0-9e]+)'), '0')::float8 AS cost,
        coalesce(substring(info FROM '"seconds":([-+.0-9e]+)'), '0')::float8 AS seconds,
        substring(info FROM '"updated":([-+.0-9e]+)')::float8 AS updated
    FROM {s}.runs WHERE (%(user)s::text IS NULL OR of_user = %(user)s)
), wanted AS (
    SELECT * FROM counted WHERE status IN ('queued', 'running', 'waiting') OR updated >= %(since)s
)"""
COUNTS = f"""{_COUNTED}
SELECT status, ended, greatest(0, floor((updated - %(since)s) / %(interval)s))::int, count(*), sum(cost), sum(seconds)
FROM wanted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
SLOWEST = f'{_COUNTED} SELECT info FROM wanted ORDER BY seconds DESC LIMIT %(slowest)s'

# Separate statements after the row is deleted, so that they see what a concurrent append has written.
DELETE = 'DELETE FROM {s}.runs WHERE run = %s RETURNING 1'
DELETE_LINES = 'DELETE FROM {s}.lines WHERE run = %s'
DELETE_BLOBS = 'DELETE FROM {s}.blobs WHERE run = %s'
