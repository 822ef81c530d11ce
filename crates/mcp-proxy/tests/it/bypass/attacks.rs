//! Messages that try to get a denied call past the rules. Each is one body over HTTP, or one line over
//! pipes. In their text, `<id>` is an id that is used once, `<meta>` the member `_meta` of the era, and
//! `<denied>` and `<harmless>` are whole calls; a text that begins with a method goes on with members of
//! its parameters, and is otherwise in order.

use crate::bypass::Era;

pub struct Attack {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// Rules that deny deletes and nothing else are enough to stop it.
    pub is_about_deletes: bool,
}

/// Every attack of the table. Ids begin at `first_id`.
pub fn attacks(era: Era, first_id: u64) -> Vec<Attack> {
    let mut id = first_id;
    let mut attacks = Vec::new();
    let mut add = |name, is_about_deletes, bytes| attacks.push(Attack { name, bytes, is_about_deletes });
    for (name, text) in [BATCHES, SYNTAX, KEYS, METHODS, TOOLS, ENVELOPES, CALLS].into_iter().flatten() {
        add(name, !name.contains("denied by name"), filled(text, era, &mut id).into());
    }
    for (name, text) in [ARGUMENTS, RESOURCES, PROMPTS].into_iter().flatten() {
        add(name, false, filled(text, era, &mut id).into());
    }
    for (name, encode) in ENCODINGS {
        add(name, true, encode(&filled("<denied>", era, &mut id)));
    }
    for (name, pad) in SIZES {
        add(name, true, filled(&pad(), era, &mut id).into());
    }
    attacks
}

/// Denied uses of tools, resources and prompts that are otherwise in order: what they try, the method, and the
/// members of its parameters.
pub fn uses() -> Vec<(&'static str, &'static str, &'static str)> {
    let tables = [METHODS, TOOLS, CALLS, ARGUMENTS, RESOURCES, PROMPTS].into_iter().flatten();
    let split =
        tables.filter_map(|(name, text)| text.split_once(' ').map(|(method, members)| (*name, method, members)));
    split.filter(|(_, method, _)| matches!(*method, "tools/call" | "resources/read" | "prompts/get")).collect()
}

/// A call that rules permit.
pub fn harmless(era: Era, id: u64) -> String {
    filled("<harmless>", era, &mut id.clone())
}

pub fn filled(text: &str, era: Era, id: &mut u64) -> String {
    let whole = text.split_once(' ').filter(|_| text.starts_with(|c: char| c.is_ascii_alphabetic()));
    let whole = whole.map(|(method, members)| {
        format!(r#"{{"jsonrpc":"2.0","id":<id>,"method":"{method}","params":{{{members},<meta>}}}}"#)
    });
    let text = whole
        .as_deref()
        .unwrap_or(text)
        .replace(
            "<denied>",
            r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo","arguments":{"repo":"x"},<meta>}}"#,
        )
        .replace(
            "<harmless>",
            r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},<meta>}}"#,
        )
        .replace("<meta>", era.meta());
    let mut parts = text.split("<id>");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        *id += 1;
        filled.push_str(&id.to_string());
        filled.push_str(part);
    }
    filled
}

type Table = &'static [(&'static str, &'static str)];

const BATCHES: Table = &[
    ("a batch of one", "[<denied>]"),
    ("a batch, the second item denied", "[<harmless>,<denied>]"),
    ("a batch, the first item denied", "[<denied>,<harmless>]"),
    ("a batch in a batch", "[[<denied>]]"),
    ("a batch deep in batches", "[[[[<harmless>,[<denied>]]]]]"),
    ("a batch with something else in it", "[1,null,<denied>]"),
    (
        "a batch with a call that has no id",
        r#"[<harmless>,{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_repo","arguments":{},<meta>}}]"#,
    ),
    ("a batch with a comma at its end", "[<denied>,]"),
    ("a batch that does not end", "[<harmless>,<denied>"),
    ("a batch in an object", r#"{"jsonrpc":"2.0","id":<id>,"batch":[<denied>]}"#),
];

const SYNTAX: Table = &[
    ("two messages, nothing between them", "<harmless><denied>"),
    ("two messages, a blank between them", "<harmless> <denied>"),
    ("two messages, a comma between them", "<harmless>,<denied>"),
    ("two messages, a CR between them", "<harmless>\r<denied>"),
    ("two messages, a VT between them", "<harmless>\u{b}<denied>"),
    ("two messages, an FF between them", "<harmless>\u{c}<denied>"),
    ("two messages, a NUL between them", "<harmless>\0<denied>"),
    ("two messages, an RS between them", "\u{1e}<harmless>\u{1e}<denied>"),
    ("two messages, a NEL between them", "<harmless>\u{85}<denied>"),
    ("two messages, an LS between them", "<harmless>\u{2028}<denied>"),
    ("two messages, a PS between them", "<harmless>\u{2029}<denied>"),
    ("the same message twice", "<denied><denied>"),
    ("something after it", "<denied>x"),
    ("a brace too many", "<denied>}"),
    ("a comment before it", "/* harmless */<denied>"),
    ("a comment after it", "<denied>// harmless"),
    (
        "a comment in it",
        r#"{"jsonrpc":"2.0",/**/"id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a comma at the end",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>},}"#,
    ),
    ("single quotes", "{'jsonrpc':'2.0','id':<id>,'method':'tools/call','params':{'name':'delete_repo'}}"),
    ("keys without quotes", r#"{jsonrpc:"2.0",id:<id>,method:"tools/call",params:{name:"delete_repo"}}"#),
    ("a guard against scripts before it", ")]}',<denied>"),
    (
        "a raw control character in a string",
        "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"method\":\"tools/call\",\"params\":{\"name\":\"delete_repo\u{1}\",<meta>}}",
    ),
    ("no end", r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}"#),
    (
        "a message in a string",
        r#""{\"jsonrpc\":\"2.0\",\"id\":<id>,\"method\":\"tools/call\",\"params\":{\"name\":\"delete_repo\"}}""#,
    ),
    (
        "a message between CRs in an argument",
        "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",<meta>,\"arguments\":{\"x\":\r<denied>\r}}}",
    ),
    (
        "a batch between CRs in an argument",
        "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",<meta>,\"arguments\":{\"x\":\r[<denied>]\r}}}",
    ),
    (
        "a message after an LS in a string",
        "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"method\":\"tools/call\",\"params\":{\"name\":\"delete_repo\",<meta>,\"arguments\":{\"x\":\"\u{2028}\"}}}",
    ),
];

const KEYS: Table = &[
    (
        "the method twice, the last denied",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/list","method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the method twice, the first denied",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","method":"tools/list","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the method twice, once escaped",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/list","m\u0065thod":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the method in capitals as well",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/list","METHOD":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the method with a capital only",
        r#"{"jsonrpc":"2.0","id":<id>,"Method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the method with a NUL as well",
        r#"{"jsonrpc":"2.0","id":<id>,"method\u0000":"tools/call","method":"tools/list","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the parameters twice, the last denied",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"echo",<meta>},"params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the parameters twice, the first denied",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>},"params":{"name":"echo",<meta>}}"#,
    ),
    (
        "the parameters with a capital as well",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"echo",<meta>},"Params":{"name":"delete_repo"}}"#,
    ),
    (
        "the parameters with a long s as well",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"echo",<meta>},"paramſ":{"name":"delete_repo"}}"#,
    ),
    ("the name twice, the last denied", r#"tools/call "name":"echo","name":"delete_repo""#),
    ("the name twice, the first denied", r#"tools/call "name":"delete_repo","name":"echo""#),
    ("the name twice, once escaped", r#"tools/call "name":"echo","\u006eame":"delete_repo""#),
    ("the name with a capital as well", r#"tools/call "name":"echo","Name":"delete_repo""#),
    ("the name with a NUL as well", r#"tools/call "name":"echo","name\u0000":"delete_repo""#),
    ("the name with a NUL and more as well", r#"tools/call "name":"echo","name\u0000x":"delete_repo""#),
    ("the name in letters that look alike as well", r#"tools/call "name":"echo","nаme":"delete_repo""#),
    ("the name with a blank as well", r#"tools/call "name":"echo","name ":"delete_repo""#),
    (
        "the id twice",
        r#"{"jsonrpc":"2.0","id":<id>,"id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "the version twice",
        r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    ("a name under a prototype", r#"tools/call "__proto__":{"name":"delete_repo"}"#),
    (
        "a method under a prototype",
        r#"{"jsonrpc":"2.0","id":<id>,"__proto__":{"method":"tools/call","params":{"name":"delete_repo"}},"params":{<meta>}}"#,
    ),
    ("a key that cannot be decoded", r#"tools/call "name":"delete_repo","\ud800":1"#),
];

const METHODS: Table = &[
    ("a method with capitals", r#"Tools/Call "name":"delete_repo""#),
    ("a method in capitals", r#"TOOLS/CALL "name":"delete_repo""#),
    (
        "a method with a blank after it",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call ","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with a blank before it",
        r#"{"jsonrpc":"2.0","id":<id>,"method":" tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with a line break",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call\n","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with a NUL",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call\u0000","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with a NUL and more",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call\u0000/harmless","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with what cannot be seen",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/\u200bcall","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method in letters that look alike",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tооls/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method in wide letters",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"ｔｏｏｌｓ／ｃａｌｌ","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method with escapes",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"\u0074ools\/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method in a list",
        r#"{"jsonrpc":"2.0","id":<id>,"method":["tools/call"],"params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method in an object",
        r#"{"jsonrpc":"2.0","id":<id>,"method":{"name":"tools/call"},"params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a method that cannot be decoded",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call\ud800","params":{"name":"delete_repo",<meta>}}"#,
    ),
];

const TOOLS: Table = &[
    ("a denied tool", "<denied>"),
    ("a tool denied by name", r#"tools/call "name":"shutdown_host","arguments":{}"#),
    ("a tool with escapes", r#"tools/call "name":"\u0064elete\u005frepo""#),
    ("a tool with capitals", r#"tools/call "name":"Delete_Repo""#),
    ("a tool denied by name, with capitals", r#"tools/call "name":"SHUTDOWN_host""#),
    ("a tool denied by name, with a blank after it", r#"tools/call "name":"shutdown_host ""#),
    ("a tool with a blank before it", r#"tools/call "name":" delete_repo""#),
    ("a tool denied by name, with a hard blank", r#"tools/call "name":"shutdown_host\u00a0""#),
    ("a tool with a NUL", r#"tools/call "name":"delete_repo\u0000""#),
    ("a tool denied by name, with a NUL and more", r#"tools/call "name":"shutdown_host\u0000_status""#),
    ("a tool denied by name, with a line break", r#"tools/call "name":"shutdown_host\n""#),
    ("a tool denied by name, with what cannot be seen", r#"tools/call "name":"shut\u200bdown_host""#),
    ("a tool with a soft hyphen", r#"tools/call "name":"delete\u00ad_repo""#),
    ("a tool denied by name, with a mark of order", r#"tools/call "name":"\ufeffshutdown_host""#),
    ("a tool with a mark of direction", r#"tools/call "name":"\u202edelete_repo""#),
    ("a tool denied by name, with tags", r#"tools/call "name":"shutdown_host\udb40\udc41""#),
    ("a tool in letters that look alike", r#"tools/call "name":"dеlеtе_rеро""#),
    ("a tool denied by name in letters that look alike", r#"tools/call "name":"ѕhutdown_һost""#),
    ("a tool denied by name, in wide letters", r#"tools/call "name":"ｓｈｕｔｄｏｗｎ＿ｈｏｓｔ""#),
    ("a tool denied by name, with accents", r#"tools/call "name":"shutdówn_host""#),
    ("a tool denied by name, with accents of their own", r#"tools/call "name":"shutdown_hos\u0301t""#),
    ("a tool denied by name, in letters of mathematics", r#"tools/call "name":"𝐬𝐡𝐮𝐭𝐝𝐨𝐰𝐧_𝐡𝐨𝐬𝐭""#),
    ("a tool denied by name, that is percent-encoded", r#"tools/call "name":"shutdown%5Fhost""#),
    ("a tool with half a pair", r#"tools/call "name":"delete_repo\udc00""#),
    ("a tool in a list", r#"tools/call "name":["delete_repo"]"#),
    ("a tool in an object", r#"tools/call "name":{"name":"delete_repo"}"#),
    ("no tool, but a title", r#"tools/call "title":"delete_repo","arguments":{}"#),
    (
        "a tool beside the parameters",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","name":"delete_repo","params":{<meta>}}"#,
    ),
];

const ENVELOPES: Table = &[
    ("no version", r#"{"id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#),
    ("an older version", r#"{"jsonrpc":"1.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#),
    (
        "a version that is a number",
        r#"{"jsonrpc":2.0,"id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    ("no id", r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_repo",<meta>}}"#),
    (
        "an id that is null",
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an id that is a list",
        r#"{"jsonrpc":"2.0","id":[<id>],"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an id that is an object",
        r#"{"jsonrpc":"2.0","id":{"id":<id>},"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an id that is a truth",
        r#"{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an id that is a fraction",
        r#"{"jsonrpc":"2.0","id":<id>.5,"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an id that is empty",
        r#"{"jsonrpc":"2.0","id":"","method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "a result as well",
        r#"{"jsonrpc":"2.0","id":<id>,"result":{},"method":"tools/call","params":{"name":"delete_repo",<meta>}}"#,
    ),
    (
        "an error as well",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{"name":"delete_repo",<meta>},"error":{"code":1,"message":""}}"#,
    ),
    ("parameters in a list", r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":["delete_repo",{}]}"#),
    (
        "parameters in a list of objects",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":[{"name":"delete_repo",<meta>}]}"#,
    ),
    (
        "parameters in a string",
        r#"{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":"{\"name\":\"delete_repo\"}"}"#,
    ),
    (
        "members in another order",
        r#"{"params":{<meta>,"arguments":{},"name":"delete_repo"},"method":"tools/call","id":<id>,"jsonrpc":"2.0"}"#,
    ),
    (
        "blanks everywhere",
        "\t{ \"jsonrpc\" : \"2.0\" ,\t\"id\" : <id> , \"method\" : \"tools/call\" , \"params\" : { \"name\" : \"delete_repo\" , <meta> } } ",
    ),
];

const ARGUMENTS: Table = &[
    ("a denied argument", r#"tools/call "name":"read_file","arguments":{"path":"/etc/passwd"}"#),
    (
        "a denied argument with escapes",
        r#"tools/call "name":"read_file","arguments":{"p\u0061th":"\/\u0065tc\/passwd"}"#,
    ),
    (
        "an argument twice, the last denied",
        r#"tools/call "name":"read_file","arguments":{"path":"/tmp","path":"/etc/passwd"}"#,
    ),
    (
        "an argument twice, the first denied",
        r#"tools/call "name":"read_file","arguments":{"path":"/etc/passwd","path":"/tmp"}"#,
    ),
    ("an argument with a capital", r#"tools/call "name":"read_file","arguments":{"Path":"/etc/passwd"}"#),
    (
        "an argument with a capital as well",
        r#"tools/call "name":"read_file","arguments":{"path":"/tmp","PATH":"/etc/passwd"}"#,
    ),
    ("an argument with a NUL in its key", r#"tools/call "name":"read_file","arguments":{"path\u0000":"/etc/passwd"}"#),
    ("an argument with a NUL", r#"tools/call "name":"read_file","arguments":{"path":"/etc/passwd\u0000.txt"}"#),
    ("an argument in letters that look alike", r#"tools/call "name":"read_file","arguments":{"pаth":"/etc/passwd"}"#),
    (
        "arguments twice",
        r#"tools/call "name":"read_file","arguments":{"path":"/tmp"},"arguments":{"path":"/etc/passwd"}"#,
    ),
    (
        "arguments with a capital as well",
        r#"tools/call "name":"read_file","arguments":{"path":"/tmp"},"Arguments":{"path":"/etc/passwd"}"#,
    ),
    ("arguments in a string", r#"tools/call "name":"read_file","arguments":"{\"path\":\"/etc/passwd\"}""#),
    ("arguments in a list", r#"tools/call "name":"read_file","arguments":[{"path":"/etc/passwd"}]"#),
    ("a number past all bounds", r#"tools/call "name":"delete_repo","arguments":{"n":1e999}"#),
];

const RESOURCES: Table = &[
    ("a denied resource", r#"resources/read "uri":"file:///secret/key""#),
    ("a resource that is percent-encoded", r#"resources/read "uri":"file:///%73ecret/key""#),
    ("a resource that is percent-encoded twice", r#"resources/read "uri":"file:///%2573ecret/key""#),
    ("a resource with encoded slashes", r#"resources/read "uri":"file:///secret%2fkey""#),
    ("a resource by way of another", r#"resources/read "uri":"file:///public/../secret/key""#),
    ("a resource by way of another, encoded", r#"resources/read "uri":"file:///public/%2e%2e/secret/key""#),
    ("a resource with backslashes", r#"resources/read "uri":"file:///public\\..\\secret\\key""#),
    ("a resource with a slash too many", r#"resources/read "uri":"file:////secret//key""#),
    ("a resource with a slash too few", r#"resources/read "uri":"file:/secret/key""#),
    ("a resource with a scheme in capitals", r#"resources/read "uri":"FILE:///secret/key""#),
    ("a resource of this machine", r#"resources/read "uri":"file://localhost/secret/key""#),
    ("a resource with dots", r#"resources/read "uri":"file:///./secret/./key""#),
    ("a resource with an encoded NUL", r#"resources/read "uri":"file:///secret/key%00.txt""#),
    ("a resource twice", r#"resources/read "uri":"file:///public/a","uri":"file:///secret/key""#),
    ("a resource in a list", r#"resources/read "uri":["file:///secret/key"]"#),
    ("a subscription to a denied resource", r#"resources/subscribe "uri":"file:///secret/key""#),
    (
        "several subscriptions, one denied",
        r#"subscriptions/listen "notifications":{"resourceSubscriptions":["file:///public/a","file:///secret/key"]}"#,
    ),
    (
        "completion of a denied resource",
        r#"completion/complete "ref":{"type":"ref/resource","uri":"file:///secret/{name}"},"argument":{"name":"name","value":""}"#,
    ),
];

const PROMPTS: Table = &[
    ("a denied prompt", r#"prompts/get "name":"secret_prompt""#),
    ("a prompt with capitals", r#"prompts/get "name":"Secret_Prompt""#),
    (
        "completion of a denied prompt",
        r#"completion/complete "ref":{"type":"ref/prompt","name":"secret_prompt"},"argument":{"name":"a","value":""}"#,
    ),
    (
        "completion of a prompt with capitals",
        r#"completion/complete "ref":{"type":"ref/prompt","name":"SECRET_PROMPT"},"argument":{"name":"a","value":""}"#,
    ),
    (
        "completion of two prompts",
        r#"completion/complete "ref":{"type":"ref/prompt","name":"a","name":"secret_prompt"},"argument":{"name":"a","value":""}"#,
    ),
    (
        "completion of a prompt or a resource",
        r#"completion/complete "ref":{"type":"ref/resource","uri":"file:///public/a","name":"secret_prompt"},"argument":{"name":"a","value":""}"#,
    ),
];

const CALLS: Table = &[
    ("a call as a task", r#"tools/call "name":"delete_repo","arguments":{},"task":{"ttl":60000}"#),
    (
        "a round of a call",
        r#"tools/call "name":"delete_repo","arguments":{},"inputResponses":{"sure":{"action":"accept","content":{}}},"requestState":"s""#,
    ),
    ("a later round of a call", r#"tools/call "name":"delete_repo","requestState":"s2""#),
    ("a call of the other direction", r#"notifications/cancelled "requestId":1,"name":"delete_repo""#),
];

type Encode = fn(&str) -> Vec<u8>;

/// The same call in other bytes.
const ENCODINGS: &[(&str, Encode)] = &[
    ("a mark of order before it", |text| format!("\u{feff}{text}").into()),
    ("two marks of order before it", |text| format!("\u{feff}\u{feff}{text}").into()),
    ("UTF-16, the low byte first", |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ("UTF-16, the high byte first", |text| text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
    ("UTF-16 with a mark of order", |text| {
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    }),
    ("UTF-32", |text| text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
    ("a name with a byte that is no UTF-8", |text| broken(text, b"delete_repo\xff")),
    ("a name with a stray byte in it", |text| broken(text, b"delete\x80_repo")),
    ("a name with a letter in too many bytes", |text| broken(text, b"delete_rep\xc1\xaf")),
    ("a name with a NUL in too many bytes", |text| broken(text, b"delete_repo\xc0\x80")),
    ("a name with half a pair in bytes", |text| broken(text, b"delete_repo\xed\xa0\x80")),
    ("a key with a byte that is no UTF-8", |text| {
        let at = text.find("\"name\"").expect("it has one") + 5;
        [&text.as_bytes()[..at], b"\xfe", &text.as_bytes()[at..]].concat()
    }),
    ("blanks that are none of JSON's", |text| format!("\u{a0}{text}\u{3000}").into()),
];

fn broken(text: &str, name: &[u8]) -> Vec<u8> {
    let at = text.find("delete_repo").expect("it has one");
    [&text.as_bytes()[..at], name, &text.as_bytes()[at + "delete_repo".len()..]].concat()
}

type Pad = fn() -> String;

/// Where size or depth is the trick.
const SIZES: &[(&str, Pad)] = &[
    ("a name after half a megabyte", || {
        let filler = "x".repeat(512 * 1024);
        format!(
            r#"{{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{{<meta>,"arguments":{{"a":"{filler}"}},"name":"delete_repo"}}}}"#
        )
    }),
    ("half a megabyte of blanks before it", || format!("{}<denied>", " ".repeat(512 * 1024))),
    ("half a megabyte of blanks after it", || format!("<denied>{}", " ".repeat(512 * 1024))),
    ("ten thousand members before the name", || {
        let members: String = (0..10_000).map(|at| format!(r#""m{at}":{at},"#)).collect();
        format!(
            r#"{{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{{{members}<meta>,"name":"delete_repo"}}}}"#
        )
    }),
    ("nested too deep for most", || {
        let (open, close) = ("[".repeat(300), "]".repeat(300));
        format!(
            r#"{{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{{"name":"delete_repo","arguments":{{"a":{open}{close}}},<meta>}}}}"#
        )
    }),
    ("nested ten thousand deep", || {
        let (open, close) = (r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
        format!(
            r#"{{"jsonrpc":"2.0","id":<id>,"method":"tools/call","params":{{"name":"delete_repo","arguments":{{"a":{open}1{close}}},<meta>}}}}"#
        )
    }),
];
