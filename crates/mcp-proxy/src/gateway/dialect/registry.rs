//! A registry's `server.json`: packages that can be run, and addresses where it runs already. The first
//! package that we know how to run counts, or else the first address.

use std::ops::Range;

use super::in_native_form;
use crate::config::{Located, Member, Value, member};
use crate::gateway::fields::Reader;
use crate::gateway::ids;

pub(super) fn translated(top: &[Member], root: &Located, reader: &mut Reader<'_>) -> Option<Located> {
    let Some((name, name_at)) = text(top, "name") else {
        reader.wrong(&(root.span.start..root.span.start), "this server has no `name`", "its names begin with it");
        return None;
    };
    let package = tables(top, "packages").find_map(|package| command(package, reader));
    let Some(members) = package.or_else(|| tables(top, "remotes").find_map(remote)) else {
        let help = "npm, pypi and oci packages can, and addresses";
        reader.wrong(&name_at, "nothing that this file offers can be run from here", help);
        return None;
    };
    let id = ids::tidied(name.rsplit('/').next().unwrap_or(name));
    let value = Located { value: Value::Table(members), span: root.span.clone() };
    Some(in_native_form(vec![Member { key: id, key_span: name_at, value }], root))
}

fn text<'t>(members: &'t [Member], key: &str) -> Option<(&'t str, Range<usize>)> {
    match member(members, key).map(|member| &member.value) {
        Some(Located { value: Value::Text(text), span }) => Some((text, span.clone())),
        _ => None,
    }
}

/// The tables in a list.
fn tables<'t>(members: &'t [Member], key: &str) -> impl Iterator<Item = &'t [Member]> {
    let items = match member(members, key).map(|member| &member.value.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(|item| match &item.value {
        Value::Table(members) => Some(members.as_slice()),
        _ => None,
    })
}

fn new(key: &str, at: &Range<usize>, value: Value) -> Member {
    Member { key: key.into(), key_span: at.clone(), value: Located { value, span: at.clone() } }
}

/// How a package is run: `npx -y NAME@VERSION` and its like.
fn command(package: &[Member], reader: &mut Reader<'_>) -> Option<Vec<Member>> {
    let is_stdio = match member(package, "transport").map(|member| &member.value.value) {
        Some(Value::Table(transport)) => text(transport, "type").is_none_or(|(word, _)| word == "stdio"),
        _ => true,
    };
    let (kind, _) = text(package, "registryType").or_else(|| text(package, "registry_type"))?;
    let (name, at) = text(package, "identifier")?;
    let version = text(package, "version").map(|(version, _)| version);
    let versioned = |sign: &str| version.map_or_else(|| name.to_owned(), |version| format!("{name}{sign}{version}"));
    let mut words: Vec<String> = match (kind, is_stdio) {
        ("npm", true) => vec!["npx".into()],
        ("pypi", true) => vec!["uvx".into()],
        ("oci", true) => ["docker", "run", "-i", "--rm"].map(String::from).to_vec(),
        _ => return None,
    };
    let runtime = arguments(package, "runtimeArguments", reader);
    if kind == "npm" && !runtime.iter().any(|word| word == "-y") {
        words.push("-y".into());
    }
    words.extend(runtime);
    let env = variables(package, "environmentVariables");
    let others: Vec<&str> = tables(package, "environmentVariables")
        .filter_map(|variable| text(variable, "name").map(|(name, _)| name))
        .filter(|name| member(&env, name).is_none())
        .collect();
    if kind == "oci" {
        let all = env.iter().map(|member| member.key.as_str()).chain(others.iter().copied());
        words.extend(all.flat_map(|name| ["-e".to_owned(), name.to_owned()]));
    }
    words.push(match kind {
        "npm" => versioned("@"),
        "pypi" => versioned("@"),
        _ if name.contains(':') || name.contains('@') => name.to_owned(),
        _ => versioned(":"),
    });
    words.extend(arguments(package, "packageArguments", reader));
    let words = words.into_iter().map(|word| Located { value: Value::Text(word), span: at.clone() }).collect();
    let mut members = vec![new("command", &at, Value::List(words))];
    if !env.is_empty() {
        members.push(new("env", &at, Value::Table(env)));
    }
    if !others.is_empty() {
        let word = |name: &str| Located { value: Value::Text(name.to_owned()), span: at.clone() };
        members.push(new("pass_env", &at, Value::List(others.into_iter().map(word).collect())));
    }
    Some(members)
}

/// Words that a package is given. One that only its user knows is asked of the environment.
fn arguments(package: &[Member], key: &str, reader: &mut Reader<'_>) -> Vec<String> {
    let mut words = Vec::new();
    for argument in tables(package, key) {
        let value = text(argument, "value").or_else(|| text(argument, "default"));
        let name = text(argument, "name").filter(|_| text(argument, "type").is_some_and(|(kind, _)| kind == "named"));
        match (name, value) {
            (Some((name, _)), Some((value, _))) => words.extend([name.to_owned(), value.to_owned()]),
            (None, Some((value, _))) => words.push(value.to_owned()),
            (Some((name, _)), None) if !is_required(argument) => words.push(name.to_owned()),
            (None, None) if !is_required(argument) => {}
            (name, None) => {
                let hint = text(argument, "valueHint").or(name.clone()).map_or("a value", |(hint, _)| hint);
                let at = argument.first().map_or(0..0, |member| member.key_span.clone());
                let what = format!("this argument has no value: {hint}");
                reader.wrong(&at, what, "write it down as `value`");
            }
        }
    }
    words
}

fn is_required(members: &[Member]) -> bool {
    member(members, "isRequired").is_some_and(|member| member.value.value == Value::Flag(true))
}

/// Variables or headers: what they are said to be, or what the environment has under their name.
fn variables(members: &[Member], key: &str) -> Vec<Member> {
    let one = |variable: &[Member]| {
        let (name, at) = text(variable, "name")?;
        let value = match text(variable, "value").or_else(|| text(variable, "default")) {
            Some((value, _)) => value.to_owned(),
            None if is_required(variable) => {
                let in_capitals = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                format!("${{env:{in_capitals}}}")
            }
            None => return None,
        };
        Some(new(name, &at, Value::Text(value)))
    };
    tables(members, key).filter_map(one).collect()
}

fn remote(remote: &[Member]) -> Option<Vec<Member>> {
    let (url, at) = text(remote, "url")?;
    let mut members = vec![new("url", &at, Value::Text(url.to_owned()))];
    if let Some((kind, at)) = text(remote, "type") {
        members.push(new("transport", &at, Value::Text(kind.to_owned())));
    }
    let headers = variables(remote, "headers");
    if !headers.is_empty() {
        members.push(new("headers", &at, Value::Table(headers)));
    }
    Some(members)
}
