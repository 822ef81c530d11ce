//! The form of services: what is allowed of each, by operation. It has two spellings,
//! `{"github": {"delete": "deny"}}` and `{"rules": [{"service": "github", "operations": ["delete"],
//! "permission": "deny"}]}`, and becomes the same rules as the native form.

use std::collections::HashMap;
use std::ops::Range;

use mcp_engine::policy::operation::{Mode, Operation};
use mcp_engine::policy::rules::Permission;

use crate::config::{Located, Member, Mistake, Reading, Value, each, member, said};

use super::file::{PERMISSIONS, RULES_MAX};
use super::native;

/// What a file of this form says.
pub(super) struct Services {
    pub default: Permission,
    /// The verdict for what belongs to none of the services, if the file says.
    pub unknown: Option<Permission>,
    /// What tools do, where the file says.
    pub operations: Vec<(String, Operation)>,
    /// How names tell it otherwise.
    pub mode: Mode,
    /// In the order of the file.
    pub names: Vec<String>,
    pub entries: Vec<Entry>,
}

pub(super) struct Entry {
    pub service: String,
    pub operation: Operation,
    pub permission: Permission,
    pub reason: Option<String>,
}

pub(super) fn read(root: &Located, members: &[Member], reading: &mut Reading<'_>) -> Option<Services> {
    let (operations, names, entries) = (Vec::new(), Vec::new(), Vec::new());
    let (default, mode) = (Permission::Allow, Mode::default());
    let mut services = Services { default, unknown: None, operations, mode, names, entries };
    let mut seen = HashMap::new();
    if members.iter().all(Member::is_comment) {
        reading.mistakes.add(Mistake::at(root.span.clone(), "there are no rules in this file"));
    }
    let is_list_of_rules =
        member(members, "rules").is_some_and(|member| !matches!(member.value.value, Value::Table(_)));
    for member in each(members).filter(|member| !member.is_comment()) {
        match member.key.as_str() {
            "default" => {
                services.default = reading.word(&member.value, "permission", &PERMISSIONS).unwrap_or_default();
            }
            "operations" if are_operations(&member.value) => {
                services.operations = native::operations(&member.value, reading);
            }
            // A service can be called so, too: permissions stand in one.
            "classify" if !matches!(member.value.value, Value::Table(_)) => {
                services.mode = native::mode(&member.value, reading).unwrap_or_default();
            }
            "unknown_service" => services.unknown = reading.word(&member.value, "permission", &PERMISSIONS),
            "rules" if is_list_of_rules => services.read_list(&member.value, &mut seen, reading),
            "mcpServers" => reading.mistakes.add(
                Mistake::at(member.key_span.clone(), "this is a client's config, and not rules")
                    .help("rules say what is allowed of a service"),
            ),
            _ if is_list_of_rules => {
                let what = format!("unknown key {}", said(&member.key));
                reading.mistakes.add(
                    Mistake::at(member.key_span.clone(), what)
                        .meant(&member.key, &["rules", "default", "operations", "classify", "unknown_service"]),
                );
            }
            _ => services.read_service(member, &mut seen, reading),
        }
    }
    if services.entries.len() > RULES_MAX {
        reading.mistakes.add(Mistake::at(root.span.clone(), format!("there are more than {RULES_MAX} rules")));
    }
    Some(services)
}

/// Whether `operations` is about tools, and no service of that name: permissions stand in one.
fn are_operations(value: &Located) -> bool {
    let is_permission = |member: &Member| match &member.value.value {
        Value::Text(word) => PERMISSIONS.iter().any(|(name, _)| name == word),
        _ => false,
    };
    matches!(&value.value, Value::Table(members) if !members.iter().any(is_permission))
}

/// Where each service and operation has been decided about.
type Seen = HashMap<(String, Operation), Range<usize>>;

impl Services {
    /// `"github": {"read": "allow", "delete": "deny"}`
    fn read_service(&mut self, member: &Member, seen: &mut Seen, reading: &mut Reading<'_>) {
        let Value::Table(permissions) = &member.value.value else {
            let what = format!(
                "what is allowed of {} is a table, and this is {}",
                said(&member.key),
                member.value.value.kind()
            );
            reading.mistakes.add(
                Mistake::at(member.value.span.clone(), what)
                    .help("write { \"read\": \"allow\", \"delete\": \"deny\" }"),
            );
            return;
        };
        self.name(&member.key);
        for permitted in each(permissions).filter(|permitted| !permitted.is_comment()) {
            let operation = operation(&permitted.key, &permitted.key_span, reading);
            let permission = permission(&permitted.value, reading);
            if let (Some(operation), Some(permission)) = (operation, permission) {
                self.add(&member.key, operation, permission, None, (&permitted.key_span, seen), reading);
            }
        }
    }

    /// `"rules": [{"service": "github", "operations": ["delete"], "permission": "deny", "reason": "…"}]`
    fn read_list(&mut self, list: &Located, seen: &mut Seen, reading: &mut Reading<'_>) {
        let Some(items) = reading.list(list, "`rules`") else { return };
        if items.is_empty() {
            reading.mistakes.add(Mistake::at(list.span.clone(), "there are no rules in this list"));
        }
        for item in items {
            self.read_rule(item, seen, reading);
        }
    }

    fn read_rule(&mut self, item: &Located, seen: &mut Seen, reading: &mut Reading<'_>) -> Option<()> {
        let members = reading.table(item, "a rule")?;
        if let Some(native) = members.iter().find(|member| ["match", "verdict"].contains(&member.key.as_str())) {
            let what = format!("`{}` is for rules below `policy`", native.key);
            reading
                .mistakes
                .add(Mistake::at(native.key_span.clone(), what).help("put `rules` into a table called `policy`"));
            return None;
        }
        reading.only(members, &["service", "operations", "permission", "reason"]);
        let mut of = |key: &str| {
            let found = member(members, key);
            if found.is_none() {
                let place = members.first().map_or(item.span.clone(), |member| member.key_span.clone());
                reading.mistakes.add(Mistake::at(place, format!("this rule has no `{key}`")));
            }
            found.map(|member| &member.value)
        };
        let (service, operations, permitted) = (of("service"), of("operations"), of("permission"));
        let service = service.and_then(|value| reading.text(value, "`service`"));
        let permitted = permitted.and_then(|value| permission(value, reading));
        let reason = member(members, "reason").and_then(|member| reading.text(&member.value, "`reason`"));
        let place = operations?;
        let operations = reading.list(place, "`operations`")?;
        if operations.is_empty() {
            let mistake = Mistake::at(place.span.clone(), "a rule without operations matches nothing");
            reading.mistakes.add(mistake.help("name some of read, write, delete, execute, admin"));
        }
        let mut known = Vec::new();
        for value in operations {
            let written = reading.text(value, "an operation");
            known.extend(
                written.and_then(|written| operation(written, &value.span, reading)).map(|op| (op, &value.span)),
            );
        }
        let (service, permitted) = (service?, permitted?);
        self.name(service);
        for (operation, place) in known {
            self.add(service, operation, permitted, reason, (place, &mut *seen), reading);
        }
        Some(())
    }

    fn name(&mut self, service: &str) {
        if !self.names.iter().any(|name| name == service) {
            self.names.push(service.to_owned());
        }
    }

    fn add(
        &mut self,
        service: &str,
        operation: Operation,
        permission: Permission,
        reason: Option<&str>,
        (place, seen): (&Range<usize>, &mut Seen),
        reading: &mut Reading<'_>,
    ) {
        let first = seen.entry((service.to_owned(), operation)).or_insert_with(|| place.clone());
        if first != place {
            let what = format!("{operation} of {} is decided twice", said(service));
            reading.mistakes.add(Mistake::at(place.clone(), what).other("the first time", first.start));
            return;
        }
        let reason = reason.filter(|reason| !reason.trim().is_empty()).map(str::to_owned);
        self.entries.push(Entry { service: service.to_owned(), operation, permission, reason });
    }
}

fn operation(written: &str, place: &Range<usize>, reading: &mut Reading<'_>) -> Option<Operation> {
    let operation = written.parse().ok();
    if operation.is_none() {
        let names = Operation::ALL.map(Operation::name);
        let what = format!("no such operation: {}", said(written));
        reading.mistakes.add(Mistake::at(place.clone(), what).meant(written, &names));
    }
    operation
}

fn permission(value: &Located, reading: &mut Reading<'_>) -> Option<Permission> {
    if let Value::Text(word) = &value.value
        && (word == "ask" || word == "observe")
    {
        let mistake = Mistake::at(value.span.clone(), format!("`{word}` is for rules below `policy`"));
        reading.mistakes.add(mistake.help("`mcp-proxy policy init` writes a file with such rules"));
        return None;
    }
    reading.word(value, "permission", &PERMISSIONS)
}
