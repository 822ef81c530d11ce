//! Lists, calls, subscriptions and restarts in an order that a seed decides, against a server that notifies right before
//! its answers, right after them and right before it dies. Nothing is lost and nothing comes twice.
//!
//! `MCP_PROXY_TEST_ROUNDS` and `MCP_PROXY_TEST_SEED` choose other rounds than those that always run. The seed decides what
//! is drawn for each round, the machine how the requests of a round meet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};

use crate::bridge_kit::{Events, expect_stream};
use crate::gateway_kit::{Fake, HttpClient, fake, names_in, text_of};
use crate::gateway_subscriptions::{UPDATED, listen};
use crate::http_kit::{Client, Listening};
use crate::kit::{PATIENCE, Sandbox};

const ROUNDS: usize = 100;
const SEED: u64 = 22;
/// Resources that clients subscribe to, and one that every client hears of all the time.
const URIS: [&str; 4] = ["r:0", "r:1", "r:2", "r:3"];
const MARK: &str = "m:0";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// A number that the environment may choose.
fn chosen(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Says on failure how to have it again.
struct Told {
    seed: u64,
    round: usize,
}

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "the seed belongs beside the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed in round {} of MCP_PROXY_TEST_SEED={}", self.round, self.seed);
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// What the server says, as its revision has it.
#[derive(Clone, Copy)]
struct Server {
    is_modern: bool,
}

impl Server {
    /// That something within a resource changed, which is named but once.
    fn updated(self, uri: &str, part: &str) -> Value {
        let mut params = json!({ "uri": format!("{uri}?{part}.$pid.$number") });
        if self.is_modern {
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": "$listen" });
        }
        json!({ "jsonrpc": "2.0", "method": UPDATED, "params": params })
    }

    /// The same as a step, several in one write.
    fn says(self, uris: &[&str]) -> Value {
        let line = |(at, uri): (usize, &&str)| self.updated(uri, &at.to_string()).to_string();
        let lines: Vec<String> = uris.iter().enumerate().map(line).collect();
        json!({ "line": lines.join("\n") })
    }

    /// What it does when it is asked to tell of a resource, at the worst of moments.
    fn subscribed(self, random: Option<&mut Random>) -> Value {
        let answer = json!({ "jsonrpc": "2.0", "id": "$id", "result": {} }).to_string();
        let updated = |part| self.updated("$uri", part).to_string();
        let lines = [answer, updated("h0"), updated("h1")].join("\n");
        let after = json!({ "line": lines });
        let before = json!({ "say": self.updated("$uri", "h") });
        match random.map_or(0, |random| random.below(6)) {
            0 | 1 => json!([after]),
            2 => json!([before, after]),
            3 => json!([before, { "answer": {} }]),
            4 => json!([after, { "kill": true }]),
            _ => json!([{ "kill": true }]),
        }
    }

    fn script(self) -> Fake {
        let resources: Vec<&str> = URIS.into_iter().chain([MARK]).collect();
        let server = fake("a").list("resources", json!(resources)).set("prefix", false).set("startup_timeout", 60);
        let server = server.script("journal_says", true);
        if self.is_modern {
            let on = json!({ "subscriptions/listen": [{ "handle": true }, self.says(&["r:0"])] });
            return server.modern().set("protocol", "modern").script("on", on);
        }
        server.script("on", json!({ "resources/subscribe": self.subscribed(None) }))
    }
}

/// A client, what it is subscribed to and what it has heard.
struct Listener {
    client: HttpClient,
    stream: Client,
    is_modern: bool,
    subscribed: BTreeSet<&'static str>,
    /// How often it heard of each change.
    heard: BTreeMap<String, usize>,
    tools_changed: usize,
}

impl Listener {
    fn legacy(gateway: &Listening) -> Self {
        let mut client = HttpClient::open(gateway);
        let stream = listen(gateway, &client);
        assert_eq!(client.ask("m", "resources/subscribe", json!({ "uri": MARK }))["result"], json!({}));
        Self::new(client, stream, false, &[MARK])
    }

    fn modern(gateway: &Listening) -> Self {
        let client = HttpClient::modern(gateway);
        let uris = [MARK, "r:0", "r:1"];
        let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
        let message = client.message("l", "subscriptions/listen", json!({ "notifications": wanted }));
        let mut beside = client.beside(gateway);
        beside.send(&message);
        let mut stream = beside.into_connection();
        expect_stream(&mut stream);
        assert_eq!(stream.next_json()["method"], "notifications/subscriptions/acknowledged");
        Self::new(client, stream, true, &uris)
    }

    fn new(client: HttpClient, stream: Client, is_modern: bool, subscribed: &[&'static str]) -> Self {
        let (subscribed, heard) = (subscribed.iter().copied().collect(), BTreeMap::new());
        Self { client, stream, is_modern, subscribed, heard, tools_changed: 0 }
    }

    /// Reads its stream until `is_last` holds.
    fn read_until(&mut self, is_last: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_last(self) {
            // Comments come now and then, whatever else does not.
            assert!(begun.elapsed() < PATIENCE, "never heard; so far {:?}", self.heard);
            let event = self.stream.event();
            let Some(data) = event.lines().find_map(|line| line.strip_prefix("data:")) else { continue };
            let message: Value = serde_json::from_str(data).unwrap_or_default();
            match message["method"].as_str() {
                Some(UPDATED) => {
                    let uri = message["params"]["uri"].as_str().unwrap().to_owned();
                    *self.heard.entry(uri).or_default() += 1;
                }
                Some(TOOLS_CHANGED) => self.tools_changed += 1,
                _ => {}
            }
        }
    }
}

/// A request of a client's.
#[derive(Clone, Debug)]
enum What {
    Call { text: String },
    Do { steps: Value, progress: usize },
    List,
    Read { uri: &'static str },
    Subscribe { uri: &'static str },
    Unsubscribe { uri: &'static str },
}

impl What {
    fn request(&self) -> (&'static str, Value) {
        match self {
            Self::Call { text } => ("tools/call", json!({ "name": "x", "arguments": { "text": text } })),
            Self::Do { steps, .. } => {
                let arguments = json!({ "steps": steps });
                ("tools/call", json!({ "name": "do", "arguments": arguments, "_meta": { "progressToken": "p" } }))
            }
            Self::List => ("tools/list", json!({})),
            Self::Read { uri } => ("resources/read", json!({ "uri": uri })),
            Self::Subscribe { uri } => ("resources/subscribe", json!({ "uri": uri })),
            Self::Unsubscribe { uri } => ("resources/unsubscribe", json!({ "uri": uri })),
        }
    }

    /// The resource that it changes something about.
    fn concerns(&self) -> Option<&'static str> {
        match self {
            Self::Subscribe { uri } | Self::Unsubscribe { uri } => Some(uri),
            _ => None,
        }
    }
}

struct Storm<'a> {
    sandbox: &'a Sandbox,
    gateway: &'a Listening,
    server: Server,
    random: Random,
    listeners: Vec<Listener>,
    journal: Journal,
    /// Tools that were listed so far, and marks that were set.
    tools: usize,
    marks: usize,
}

/// What the server wrote down that was not looked at.
#[derive(Default)]
struct Journal {
    read: usize,
    /// The changes that it told of.
    said: Vec<String>,
    tools_changed: usize,
    deaths: usize,
}

impl Journal {
    fn read_on(&mut self, sandbox: &Sandbox) {
        let text = std::fs::read(sandbox.path("a.journal")).unwrap();
        let news = &text[self.read..];
        let news = &news[..news.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)];
        self.read += news.len();
        for line in std::str::from_utf8(news).unwrap().lines() {
            let what = line.split_once(' ').unwrap().1;
            self.deaths += usize::from(what == "dies");
            let said = what.strip_prefix("says ").map(|said| serde_json::from_str::<Value>(said).unwrap());
            match said.as_ref().and_then(|said| said["method"].as_str()) {
                Some(UPDATED) => self.said.push(said.unwrap()["params"]["uri"].as_str().unwrap().to_owned()),
                Some(TOOLS_CHANGED) => self.tools_changed += 1,
                _ => {}
            }
        }
    }
}

impl Storm<'_> {
    fn round(&mut self) {
        // Drawn in any case, so that the rounds to come are the seed's alone.
        let (plan, waits) = (self.plan(), self.random.one_in(2));
        let before: Vec<BTreeSet<&str>> = self.listeners.iter().map(|it| it.subscribed.clone()).collect();
        let changes_heard: Vec<usize> = self.listeners.iter().map(|it| it.tools_changed).collect();
        let (changes_said, deaths) = (self.journal.tools_changed, self.journal.deaths);
        let answers = self.exchange(&plan);
        self.journal.read_on(self.sandbox);
        let has_died = self.journal.deaths > deaths;
        for ((at, what), all) in plan.iter().zip(&answers) {
            self.check(*at, what, all, has_died);
        }
        self.mark(has_died);
        self.look_at_what_was_heard(&plan, &before);
        if self.journal.tools_changed > changes_said {
            self.look_at_lists();
            // Changes that came of the lists belong to this round.
            self.mark(false);
            self.journal.read_on(self.sandbox);
            if waits {
                for (listener, before) in self.listeners.iter_mut().zip(changes_heard) {
                    listener.read_until(|listener| listener.tools_changed > before);
                }
            }
        }
    }

    fn plan(&mut self) -> Vec<(usize, What)> {
        let mut plan: Vec<(usize, What)> = Vec::new();
        for _ in 0..=self.random.below(4) {
            let at = self.random.below(self.listeners.len());
            let what = self.what(at);
            let is_taken = |(by, other): &(usize, What)| *by == at && other.concerns() == what.concerns();
            let is_one_of_many = what.concerns().is_none() || !plan.iter().any(is_taken);
            if is_one_of_many {
                plan.push((at, what));
            }
        }
        plan
    }

    fn what(&mut self, at: usize) -> What {
        let uri = self.random.pick(&URIS);
        let may_subscribe = !self.listeners[at].is_modern;
        match self.random.below(12) {
            0 | 1 => What::Call { text: self.random.next().to_string() },
            2 => What::Read { uri },
            3 | 4 => What::List,
            5..=8 if may_subscribe => match self.listeners[at].subscribed.contains(uri) {
                true => What::Unsubscribe { uri },
                false => What::Subscribe { uri },
            },
            _ => self.steps(),
        }
    }

    /// A call in which the server says much, and ends in one way or another.
    fn steps(&mut self) -> What {
        let mut steps = Vec::new();
        let progress = self.random.below(3);
        for _ in 0..progress {
            let params = json!({ "progressToken": "$token", "progress": 1 });
            steps.push(json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress", "params": params } }));
        }
        let changed = json!({ "say": { "jsonrpc": "2.0", "method": TOOLS_CHANGED } });
        match self.random.below(8) {
            0 => {
                self.tools += 1;
                let extra = (1..=self.tools).map(|number| format!("t{number}"));
                let tools: Vec<String> = ["x", "do"].map(str::to_owned).into_iter().chain(extra).collect();
                steps.extend([json!({ "lists": { "tools": tools } }), changed]);
            }
            1 => {
                steps.push(json!({ "next": { "resources/subscribe": self.server.subscribed(Some(&mut self.random)) } }))
            }
            2 => {
                let handle = json!({ "handle": true });
                let next = match self.random.below(5) {
                    0 | 1 => json!([changed, handle]),
                    2 | 3 => json!([handle, changed]),
                    _ => json!([{ "kill": true }]),
                };
                steps.push(json!({ "next": { "tools/list": next } }));
            }
            _ => {
                let uris: Vec<&str> = (0..=self.random.below(3)).map(|_| self.random.pick(&URIS)).collect();
                steps.push(self.server.says(&uris));
            }
        }
        let dies = self.random.one_in(10);
        steps.push(if dies { json!({ "kill": true }) } else { json!({ "text": "done" }) });
        What::Do { steps: steps.into(), progress }
    }

    /// Sends the requests of a round at the same time, and returns all that came of each.
    fn exchange(&mut self, plan: &[(usize, What)]) -> Vec<Vec<Value>> {
        let mut open: Vec<HttpClient> = Vec::new();
        for (number, (at, what)) in plan.iter().enumerate() {
            let (method, params) = what.request();
            let mut connection = self.listeners[*at].client.beside(self.gateway);
            let message = connection.message(number, method, params);
            connection.send(&message);
            open.push(connection);
        }
        open.iter_mut().map(HttpClient::answers).collect()
    }

    /// Each request is answered once, and in vain only if a process died.
    fn check(&mut self, at: usize, what: &What, all: &[Value], has_died: bool) {
        let (told, answers): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|it| it.get("method").is_some());
        assert_eq!(answers.len(), 1, "{what:?}: {all:?}");
        let answer = answers[0];
        let progress = told.iter().filter(|it| it["method"] == "notifications/progress").count();
        if answer.get("error").is_some() {
            assert!(has_died, "{what:?}: {answer}");
            assert!(matches!(answer["error"]["code"].as_i64(), Some(5031..=5033)), "{what:?}: {answer}");
            return;
        }
        match what {
            What::Call { text } => assert_eq!(text_of(answer), format!("a:x:{text}")),
            What::Do { progress: expected, .. } => {
                assert_eq!((text_of(answer), progress), ("done".into(), *expected), "{all:?}");
            }
            What::List => {
                let names = names_in(answer, "tools", "name");
                let is_absent = names.is_empty() && has_died;
                assert!(is_absent || names.starts_with(&["x".into(), "do".into()]), "{answer}");
                assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{answer}");
            }
            What::Read { uri } => assert_eq!(answer["result"]["contents"][0]["text"], format!("a:{uri}")),
            What::Subscribe { uri } => drop(self.listeners[at].subscribed.insert(uri)),
            What::Unsubscribe { uri } => drop(self.listeners[at].subscribed.remove(uri)),
        }
    }

    /// Has all clients hear of one thing, after which nothing from before can come. A server of the newest revision may
    /// be asked once more to listen when it has answered the first time, which is before anything that follows that.
    fn mark(&mut self, has_died: bool) {
        for _ in 0..=usize::from(self.server.is_modern) {
            self.mark_once(has_died);
        }
    }

    fn mark_once(&mut self, has_died: bool) {
        let mark = loop {
            self.marks += 1;
            let part = format!("mark{}", self.marks);
            let steps = json!([{ "say": self.server.updated(MARK, &part) }, { "text": "marked" }]);
            let answer = self.listeners[0].client.call("mark", "do", json!({ "steps": steps }));
            if answer.get("result").is_some() {
                break format!("{MARK}?{part}.");
            }
            assert!(has_died, "{answer}");
        };
        for listener in &mut self.listeners {
            listener.read_until(|listener| listener.heard.keys().any(|uri| uri.starts_with(&mark)));
        }
    }

    /// Each change reached its subscribers, each of them once, and no other client.
    fn look_at_what_was_heard(&mut self, plan: &[(usize, What)], before: &[BTreeSet<&str>]) {
        self.journal.read_on(self.sandbox);
        let said = std::mem::take(&mut self.journal.said);
        for (at, listener) in self.listeners.iter_mut().enumerate() {
            for uri in &said {
                let count = listener.heard.remove(uri).unwrap_or_default();
                let (base, part) = uri.split_once('?').unwrap();
                let concerned: Vec<usize> =
                    plan.iter().filter(|(_, what)| what.concerns() == Some(base)).map(|(by, _)| *by).collect();
                let (was, is) = (before[at].contains(base), listener.subscribed.contains(base));
                // The server told of it because of this client, the only subscriber.
                let is_own = part.starts_with('h') && concerned == [at] && !before.iter().any(|it| it.contains(base));
                let expected = match (was, is) {
                    (true, true) => 1..=1,
                    (false, true) if is_own => 1..=1,
                    (false, false) => 0..=0,
                    _ => 0..=1,
                };
                assert!(expected.contains(&count), "client {at} heard {uri} {count} times: {plan:?}");
            }
            assert!(listener.heard.is_empty(), "client {at} heard {:?} late or of nothing", listener.heard);
        }
    }

    /// Every client is listed what there is now.
    fn look_at_lists(&mut self) {
        let script: Value = serde_json::from_slice(&std::fs::read(self.sandbox.path("a.script")).unwrap()).unwrap();
        for at in 0..self.listeners.len() {
            let deaths = self.journal.deaths;
            let mut list = self.listeners[at].client.ask(at, "tools/list", json!({}));
            self.journal.read_on(self.sandbox);
            if self.journal.deaths > deaths {
                // It was told earlier to die when it is asked this. A list does not wait for it to come back.
                self.mark(true);
                list = self.listeners[at].client.ask(at, "tools/list", json!({}));
            }
            assert_eq!(json!(names_in(&list, "tools", "name")), script["lists"]["tools"], "{list}");
        }
    }
}

fn storm(is_modern: bool) {
    let seed = chosen("MCP_PROXY_TEST_SEED", SEED);
    let rounds = chosen("MCP_PROXY_TEST_ROUNDS", ROUNDS as u64) as usize;
    let mut told = Told { seed, round: 0 };
    let (sandbox, server) = (Sandbox::new(), Server { is_modern });
    let top = json!({ "initialize_wait": 60, "list_wait": 60 });
    let gateway = sandbox.serve_http(&[server.script()], top);
    let second = if is_modern { Listener::modern } else { Listener::legacy };
    let listeners = vec![Listener::legacy(&gateway), second(&gateway)];
    let (sandbox_, gateway_, random) = (&sandbox, &gateway, Random(seed));
    let journal = Journal::default();
    let mut storm =
        Storm { sandbox: sandbox_, gateway: gateway_, server, random, listeners, journal, tools: 0, marks: 0 };
    // What was told while the clients subscribed is of no concern.
    storm.mark(false);
    storm.journal.read_on(&sandbox);
    storm.journal.said.clear();
    storm.listeners.iter_mut().for_each(|listener| listener.heard.clear());
    for round in 1..=rounds {
        told.round = round;
        storm.round();
    }
    let deaths = storm.journal.deaths;
    drop(storm);
    gateway.end();
    // One process at a time, and one more for each that died.
    assert_eq!(sandbox.starts("a").len(), deaths + 1);
    sandbox.nothing_is_left();
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    storm(false);
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_from_a_server_of_the_newest_revision() {
    storm(true);
}
