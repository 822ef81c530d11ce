//! Every key of a gateway's own configuration, in one table. The reader knows no other keys, the JSON
//! Schema is made of it, and so is `docs/config.md`.

/// A key, and what people should know of it.
pub struct Key {
    pub name: &'static str,
    pub takes: Takes,
    /// What counts where it is left out, for people; empty where that is nothing.
    pub default: &'static str,
    pub about: &'static str,
}

#[derive(Clone, Copy)]
pub enum Takes {
    Text,
    /// Text that must not be empty, nor be seen.
    Secret,
    Flag,
    /// A number of seconds, or text with a unit.
    Duration,
    /// The same, or `0`, `false` or `"off"`.
    DurationOrOff,
    Count {
        min: u64,
        max: u64,
    },
    Words(&'static [&'static str]),
    Texts,
    /// Names and their text; a number or a flag is taken as it is spelled.
    Pairs,
    /// A list of words, or a program beside `args`.
    Command,
    /// `stdio`, a port, or an address with one.
    Listen,
    /// A few words, or a list of ids.
    Notifications,
    /// As in a rules file, or the path of one.
    Policy,
    /// The name of a tool, or a flag.
    Tool,
    /// The same, or a table with it.
    ToolWith(&'static [Key]),
    List(&'static [Key]),
    /// A table of things by their names.
    Named(&'static [Key]),
    /// A list of things with an `id`, or a table of them by it.
    Servers(&'static [Key]),
}

pub const TRANSPORTS: &[&str] =
    &["auto", "stdio", "streamable-http", "sse", "http", "streamable_http", "streamableHttp"];
pub const STDIO_MODES: &[&str] = &["auto", "newline", "content-length"];
pub const STARTS: &[&str] = &["lazy", "eager"];
pub const INSTANCES: &[&str] = &["shared", "per-client"];
pub const PROTOCOLS: &[&str] = &["auto", "legacy", "modern"];
pub const NOTIFIED: &[&str] = &["concerned", "all", "nobody"];
pub const PROXY_TOOL_MODES: &[&str] = &["beside", "instead"];
pub const PROXY_TOOL_DIALECTS: &[&str] = &["extension", "magg"];
pub const LOG_LEVELS: &[&str] = &[
    "error", "warn", "info", "debug", "trace", "warning", "critical", "ERROR", "WARN", "INFO", "DEBUG", "TRACE",
    "WARNING", "CRITICAL",
];

/// The largest count that a configuration may give; more is a slip of the hand.
pub const COUNT_MAX: u64 = 1_000_000;
const CALLS: Takes = Takes::Count { min: 1, max: COUNT_MAX };

pub const TOP: &[Key] = &[
    Key {
        name: "name",
        takes: Takes::Text,
        default: "mcp-proxy",
        about: "What the gateway calls itself towards clients.",
    },
    Key {
        name: "instructions",
        takes: Takes::Text,
        default: "",
        about: "What clients are told first, before what the servers say of themselves.",
    },
    Key {
        name: "servers",
        takes: Takes::Servers(SERVER),
        default: "",
        about: "The servers behind the gateway, in the order in which lists are merged.",
    },
    Key {
        name: "listen",
        takes: Takes::Listen,
        default: "stdio",
        about: "Where clients connect: `stdio`, a port on 127.0.0.1, or an IP address with a port. `--listen` counts before it. Other machines can connect only if there is a token.",
    },
    Key {
        name: "auth_token",
        takes: Takes::Secret,
        default: "",
        about: "What every client has to show: as a bearer token, or as `params.proxy.authToken`.",
    },
    Key {
        name: "tokens",
        takes: Takes::List(TOKEN),
        default: "",
        about: "The same for several clients, each with a name and with what it may use.",
    },
    Key {
        name: "rate_limit_per_minute",
        takes: CALLS,
        default: "",
        about: "Requests a minute of one token; those without one share one count.",
    },
    Key {
        name: "in_flight_per_client",
        takes: CALLS,
        default: "256",
        about: "Calls of one client at a time; more are refused.",
    },
    Key {
        name: "max_message_bytes",
        takes: Takes::Count { min: 1024, max: 1_073_741_824 },
        default: "67108864",
        about: "The largest message that is passed on.",
    },
    Key {
        name: "response_timeout",
        takes: Takes::Duration,
        default: "60s",
        about: "What a server gets to answer, unless it has its own.",
    },
    Key {
        name: "cancel_grace",
        takes: Takes::DurationOrOff,
        default: "2s",
        about: "What a server gets to settle a call that was cancelled or timed out, before the calls of other clients get a fresh connection; 0 for none.",
    },
    Key {
        name: "initialize_wait",
        takes: Takes::Duration,
        default: "2s",
        about: "How long a client that begins waits for servers that have not come up; its answer leaves out the rest.",
    },
    Key { name: "list_wait", takes: Takes::Duration, default: "5s", about: "The same for whoever asks for a list." },
    Key {
        name: "page_size",
        takes: CALLS,
        default: "1000",
        about: "Items on a page of a merged list; a client's `limit` may ask for fewer.",
    },
    Key {
        name: "list_pages",
        takes: CALLS,
        default: "50",
        about: "Pages of one server's list that are read. The rest is cut, and `_meta` of the merged list says so.",
    },
    Key {
        name: "list_items",
        takes: CALLS,
        default: "10000",
        about: "Items of one server's list that are kept; the same beyond it.",
    },
    Key {
        name: "notifications",
        takes: Takes::Notifications,
        default: "concerned",
        about: "Which servers a client's notification reaches that is for none in particular: those that it has to do with, `all`, `nobody`, or a list of ids.",
    },
    Key {
        name: "healthcheck_interval",
        takes: Takes::DurationOrOff,
        default: "30s",
        about: "The time between two looks at whether a server still answers; 0 for none.",
    },
    Key {
        name: "healthcheck_timeout",
        takes: Takes::Duration,
        default: "10s",
        about: "What a server gets to answer such a look.",
    },
    Key {
        name: "drain",
        takes: Takes::Duration,
        default: "10s",
        about: "What calls get to finish once the gateway is asked to end.",
    },
    Key {
        name: "proxy_tool",
        takes: Takes::ToolWith(PROXY_TOOL),
        default: "",
        about: "A tool through which clients reach everything: `true`, its name, or a table. `--proxy-tool` counts before it.",
    },
    Key {
        name: "rules",
        takes: Takes::Text,
        default: "",
        about: "The path of a rules file: what clients may do ([policy.md](policy.md)).",
    },
    Key {
        name: "policy",
        takes: Takes::Policy,
        default: "",
        about: "The rules themselves, as in a rules file; or its path.",
    },
    Key {
        name: "log_level",
        takes: Takes::Words(LOG_LEVELS),
        default: "info",
        about: "What is told on standard error: this, and what is worse.",
    },
    Key { name: "structured_logging", takes: Takes::Flag, default: "false", about: "Tell it as lines of JSON." },
];

pub const SERVER: &[Key] = &[
    Key {
        name: "id",
        takes: Takes::Text,
        default: "",
        about: "What the server is called, and what its names begin with: letters, digits, `-` and `_`, without `__`. In a table of servers the key is the id.",
    },
    Key {
        name: "command",
        takes: Takes::Command,
        default: "",
        about: "The program and its arguments, as a list; or the program alone, beside `args`. No shell reads it.",
    },
    Key { name: "args", takes: Takes::Texts, default: "", about: "Further arguments." },
    Key {
        name: "env",
        takes: Takes::Pairs,
        default: "",
        about: "Variables of its environment, beside those that every server gets.",
    },
    Key {
        name: "pass_env",
        takes: Takes::Texts,
        default: "",
        about: "Names of the gateway's own variables that it gets as well, where they are set.",
    },
    Key {
        name: "cwd",
        takes: Takes::Text,
        default: "",
        about: "The directory it starts in, seen from the file's; without it, where the gateway was started.",
    },
    Key {
        name: "stdio_mode",
        takes: Takes::Words(STDIO_MODES),
        default: "auto",
        about: "How messages to a command are marked off; `auto` is a line each, unless it answers otherwise.",
    },
    Key { name: "url", takes: Takes::Text, default: "", about: "The server's address, in place of a command." },
    Key {
        name: "transport",
        takes: Takes::Words(TRANSPORTS),
        default: "auto",
        about: "What is spoken: `stdio` with a command, `streamable-http` (or `http`) or `sse` at an address; `auto` finds out.",
    },
    Key { name: "headers", takes: Takes::Pairs, default: "", about: "Headers of every request to an address." },
    Key { name: "enabled", takes: Takes::Flag, default: "true", about: "Whether it takes part." },
    Key { name: "disabled", takes: Takes::Flag, default: "", about: "The same the other way round." },
    Key {
        name: "prefix",
        takes: Takes::Flag,
        default: "true",
        about: "Whether its names are given out as `<id>__<name>`. Without it, a name that another server has is an error.",
    },
    Key {
        name: "start",
        takes: Takes::Words(STARTS),
        default: "lazy",
        about: "Whether it starts with the first client, or with the gateway.",
    },
    Key {
        name: "instance",
        takes: Takes::Words(INSTANCES),
        default: "shared",
        about: "Whether clients share it, or each gets its own.",
    },
    Key {
        name: "exclusive",
        takes: Takes::Flag,
        default: "false",
        about: "Whether all clients share one process or session, and there is never a second: for a browser, a memory.",
    },
    Key {
        name: "protocol",
        takes: Takes::Words(PROTOCOLS),
        default: "auto",
        about: "Which revisions it knows: those that begin with `initialize` (`legacy`), or the later ones; `auto` asks it.",
    },
    Key {
        name: "startup_timeout",
        takes: Takes::Duration,
        default: "30s for a command, 15s for an address",
        about: "What it gets to introduce itself. `npx` and `uvx` download first.",
    },
    Key {
        name: "shutdown_grace",
        takes: Takes::Duration,
        default: "2s",
        about: "What a command gets to end by itself.",
    },
    Key {
        name: "response_timeout",
        takes: Takes::Duration,
        default: "that of the gateway",
        about: "What it gets to answer; progress begins it anew.",
    },
    Key {
        name: "response_cap",
        takes: Takes::Duration,
        default: "10m",
        about: "What it gets at most, whatever progress it makes; never less than `response_timeout`.",
    },
    Key {
        name: "cancel_grace",
        takes: Takes::DurationOrOff,
        default: "that of the gateway",
        about: "The same for this server. An `exclusive` server gets no fresh connection: logs and questions reach other clients again after it, or after `response_cap` where it is not set here.",
    },
    Key {
        name: "idle_stop",
        takes: Takes::DurationOrOff,
        default: "off",
        about: "A command that nobody used for this long is stopped, and started when it is needed.",
    },
    Key {
        name: "in_flight",
        takes: CALLS,
        default: "64 for a command, 256 for an address",
        about: "Calls at a time; more wait.",
    },
    Key {
        name: "queue",
        takes: Takes::Count { min: 0, max: COUNT_MAX },
        default: "256",
        about: "Calls that wait; more are refused.",
    },
    Key { name: "rate_limit_per_minute", takes: CALLS, default: "", about: "Calls a minute of one token." },
    Key {
        name: "enabled_tools",
        takes: Takes::Texts,
        default: "",
        about: "Its tools that are given out, by their own names; `*` is any text. Without it, all.",
    },
    Key { name: "disabled_tools", takes: Takes::Texts, default: "", about: "Its tools that are not." },
    Key {
        name: "tools",
        takes: Takes::Named(TOOL),
        default: "",
        about: "What there is to say of single tools, by their own names; `*` is any text, and those that match share a limit.",
    },
    Key {
        name: "unwrap_proxy_tool",
        takes: Takes::Tool,
        default: "",
        about: "What the server has behind a proxy tool of its own is shown as the server's: `true` finds the tool, a name says which it is.",
    },
];

pub const PROXY_TOOL: &[Key] = &[
    Key { name: "name", takes: Takes::Text, default: "proxy", about: "What the tool is called." },
    Key {
        name: "mode",
        takes: Takes::Words(PROXY_TOOL_MODES),
        default: "beside",
        about: "Whether clients see it beside everything else, or `instead`.",
    },
    Key {
        name: "dialect",
        takes: Takes::Words(PROXY_TOOL_DIALECTS),
        default: "extension",
        about: "How lists and descriptions spell the types of what is in them: `magg` for the client of Magg, which reads no others. A client that calls itself so is told them in any case.",
    },
];

pub const TOOL: &[Key] =
    &[Key { name: "rate_limit_per_minute", takes: CALLS, default: "", about: "Calls of it a minute of one token." }];

pub const TOKEN: &[Key] = &[
    Key {
        name: "name",
        takes: Takes::Text,
        default: "",
        about: "Who shows it; stands in logs and in the audit in place of the token.",
    },
    Key { name: "token", takes: Takes::Secret, default: "", about: "What is shown." },
    Key {
        name: "servers",
        takes: Takes::Texts,
        default: "",
        about: "Ids of the servers it is good for; `*` is any text. Without it, all.",
    },
    Key {
        name: "tools",
        takes: Takes::Texts,
        default: "",
        about: "The tools it is good for, by the names that servers give them or as `<id>__<name>`; `*` is any text. Without it, all.",
    },
    Key {
        name: "rate_limit_per_minute",
        takes: CALLS,
        default: "that of the gateway",
        about: "Requests a minute of whoever shows it.",
    },
];

/// The names in a table.
pub fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
