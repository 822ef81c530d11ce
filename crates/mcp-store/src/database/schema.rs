//! The tables of the caches. A change of one raises its version in [`super`].

/// The sessions, with what a list shows of each.
pub(super) const CATALOGUE: &str = "
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        file_len INTEGER NOT NULL,
        file_mtime_ns INTEGER NOT NULL,
        started_ns INTEGER NOT NULL,
        ended_ns INTEGER,
        interrupted INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        header TEXT NOT NULL,
        notes TEXT NOT NULL,
        warnings TEXT NOT NULL
    ) STRICT;";

/// `direction` and `kind` are those of the segment and of [`crate::MessageKind`]; `method` and `tool` of
/// an answer are those of its request; `place` is where its record begins in the segment; `is_own` says that a gateway
/// began it. Those in `edited` can be found by what they were changed to as well.
pub(super) const INDEX: &str = "
    CREATE TABLE shards (
        number INTEGER PRIMARY KEY,
        text_bytes INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        shard INTEGER NOT NULL,
        file_len INTEGER NOT NULL,
        next_record INTEGER NOT NULL,
        messages INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY,
        sequence INTEGER NOT NULL,
        time_ns INTEGER NOT NULL,
        direction INTEGER NOT NULL,
        kind TEXT NOT NULL,
        method TEXT,
        tool TEXT,
        jsonrpc_id TEXT,
        status TEXT,
        size INTEGER NOT NULL,
        place INTEGER NOT NULL,
        is_own INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE edited (number INTEGER PRIMARY KEY) STRICT;";

/// `part` and `place` are where the next line of a log will begin, `seq` and `hash` those of the last one.
pub(super) const LEDGER: &str = "
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY,
        instance BLOB NOT NULL UNIQUE,
        part INTEGER NOT NULL,
        place INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        hash TEXT NOT NULL,
        has_ended INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE decisions (
        number INTEGER PRIMARY KEY,
        time_ns INTEGER NOT NULL,
        session BLOB,
        sequence INTEGER,
        conversation INTEGER,
        client TEXT,
        server TEXT,
        direction TEXT,
        method TEXT,
        tool TEXT,
        operation TEXT,
        verdict TEXT NOT NULL,
        rule TEXT,
        rules TEXT,
        actor TEXT,
        why TEXT,
        held_us INTEGER,
        outcome TEXT,
        code INTEGER,
        latency_us INTEGER,
        answer_session BLOB,
        answer_sequence INTEGER
    ) STRICT;
    CREATE INDEX decisions_by_time ON decisions (time_ns);
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY,
        time_ns INTEGER NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX notes_by_time ON notes (time_ns);";
