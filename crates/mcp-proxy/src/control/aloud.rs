//! Questions said on standard error, where whoever started the proxy may look: what is asked, and the
//! commands that answer it.

use mcp_engine::intercept::Held;
use mcp_wire::visible::visible;
use tokio::sync::mpsc;

use crate::inspect::lines;
use crate::report::{duration, say};

/// Questions that wait to be printed on standard error; `held` lists the others.
const WAITING_MAX: usize = 64;

/// Where questions come in, and what has them said.
pub(crate) fn voice(instance: &str) -> (impl Fn(Held) + Send + 'static, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let instance = instance.to_owned();
    let tell = move |held: Held| drop(sender.try_send(line(&instance, &held)));
    (tell, receiver)
}

/// Says each line until there are no more.
pub(super) async fn say_all(mut lines: mpsc::Receiver<String>) {
    while let Some(line) = lines.recv().await {
        say(&line);
    }
}

fn line(instance: &str, held: &Held) -> String {
    let Some(ruling) = &held.asks else { return String::new() };
    let about = lines::about(&held.message.method().unwrap_or_default(), held.message.subject().as_deref());
    let said = ruling.message.as_ref().map(|message| format!(": {}", visible(message))).unwrap_or_default();
    let within = held.left.map(|left| format!(" within {}", duration(left.as_nanos() as u64))).unwrap_or_default();
    let (rule, sequence) = (visible(ruling.name()), held.sequence);
    format!(
        "mcp-proxy {instance}: rule \"{rule}\" asks about {about}{said}\n  \
         answer{within} with `mcp-proxy approve {instance} {sequence}` or `mcp-proxy deny {instance} {sequence}`"
    )
}
