//! The mouse: a click is the key of what was clicked, the wheel moves.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::app::App;
use crate::command::{Command, Screen};
use crate::state::common::Overlay;
use crate::state::detail::View;
use crate::state::menu::Chosen;

/// What was drawn in some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// The list of messages.
    List,
    Detail,
    Tab(View),
    Command(Command),
    Screen(Screen),
    /// A line of a menu.
    Choice(usize),
    /// A line of the list that a screen has.
    Line(usize),
    /// The pane beside that list.
    Beside,
    /// A request of the repeater, and a run of the one that is shown.
    Request(usize),
    Run(usize),
}

/// Lines that one turn of the wheel moves.
const WHEEL: usize = 3;

pub(crate) fn mouse(app: &mut App, event: MouseEvent) {
    let at = Position::new(event.column, event.row);
    // What was drawn last lies on top.
    let hit = app.hits.iter().rev().find(|(area, _)| area.contains(at)).copied();
    match event.kind {
        MouseEventKind::ScrollDown => wheel(app, hit.map(|(_, hit)| hit), Command::Down),
        MouseEventKind::ScrollUp => wheel(app, hit.map(|(_, hit)| hit), Command::Up),
        MouseEventKind::Down(MouseButton::Left) => {
            let Some((area, hit)) = hit else { return };
            click(app, hit, usize::from(event.row - area.y));
        }
        _ => {}
    }
}

fn wheel(app: &mut App, hit: Option<Hit>, command: Command) {
    if !matches!(app.common.overlay, Overlay::None) {
        return;
    }
    let is_beside = matches!(hit, Some(Hit::Detail | Hit::Beside));
    let had_keys = app.is_beside().map(|is| std::mem::replace(is, is_beside));
    (0..WHEEL).for_each(|_| app.command(command));
    if let (Some(is), Some(had_keys)) = (app.is_beside(), had_keys) {
        *is = had_keys;
    }
    app.settle();
}

fn click(app: &mut App, hit: Hit, line: usize) {
    match hit {
        Hit::Choice(at) => {
            if let Overlay::Menu(menu) = std::mem::take(&mut app.common.overlay)
                && let Chosen::It(choice) = menu.choose(at)
            {
                app.choose(choice);
            }
        }
        _ if !matches!(app.common.overlay, Overlay::None) => {}
        Hit::List => {
            app.detail.has_keys = false;
            if let Some(sequence) = app.traffic.on_line(line) {
                app.traffic.select(sequence, &mut app.common);
            }
        }
        Hit::Detail => {
            app.detail.has_keys = true;
            app.detail.click(line, &mut app.common);
        }
        Hit::Tab(view) => app.detail.show(view, &mut app.common),
        Hit::Command(command) => app.command(command),
        Hit::Screen(screen) => app.show(screen),
        Hit::Line(at) => app.select_line(at),
        Hit::Beside => app.is_beside().into_iter().for_each(|is| *is = true),
        Hit::Request(tab) => app.repeater.show_tab(tab),
        Hit::Run(run) => app.repeater.show_run(run),
    }
    app.settle();
}
