//! The table of `ps`: every column where programs read it, as much as fits on a terminal.

pub(super) const COLUMNS: usize = 14;
pub(super) type Cells = [String; COLUMNS];

const HEADINGS: [&str; COLUMNS] = [
    "ID",
    "NAME",
    "CLIENT",
    "CLIENTS",
    "REVISION",
    "TRANSPORT",
    "PORT",
    "AGE",
    "MESSAGES",
    "HELD",
    "MODE",
    "CONTROLLED BY",
    "SERVERS",
    "SERVER",
];
const SERVER: usize = COLUMNS - 1;
/// Columns that a narrow terminal goes without, the first of them first.
const SPARED: [&str; 8] = ["REVISION", "TRANSPORT", "CLIENT", "CONTROLLED BY", "MESSAGES", "AGE", "HELD", "NAME"];
const GAP: &str = "  ";
/// Characters of the server's command that are worth a column.
const SERVER_LEAST: usize = 16;
/// A cell without a value.
pub(super) const NONE: &str = "-";

/// The lines of the table, the headings first.
pub(super) fn lines(rows: &[Cells], width: Option<usize>) -> Vec<String> {
    let headings = HEADINGS.map(str::to_owned);
    let of_column = |at: usize| rows.iter().chain([&headings]).map(move |row| row[at].chars().count());
    let mut widths: [usize; COLUMNS] = std::array::from_fn(|at| of_column(at).max().unwrap_or_default());
    let mut shown: Vec<usize> = (0..COLUMNS).collect();
    if let Some(width) = width {
        fit(rows, &mut widths, &mut shown, width);
    }
    let line = |row: &Cells| {
        let cells = shown.iter().map(|&at| format!("{:<width$}", cut(&row[at], widths[at]), width = widths[at]));
        let line = cells.collect::<Vec<_>>().join(GAP);
        cut(line.trim_end(), width.unwrap_or(usize::MAX))
    };
    [&headings].into_iter().chain(rows).map(line).collect()
}

/// Leaves out columns and shortens the last until a line fits.
fn fit(rows: &[Cells], widths: &mut [usize; COLUMNS], shown: &mut Vec<usize>, width: usize) {
    let needed = |shown: &[usize], server: usize| {
        let cells = shown.iter().map(|&at| if at == SERVER { server } else { widths[at] } + GAP.len());
        cells.sum::<usize>() - GAP.len()
    };
    if needed(shown, widths[SERVER]) <= width {
        return;
    }
    shown.retain(|&at| at == SERVER || rows.iter().any(|row| row[at] != NONE));
    let least = widths[SERVER].min(SERVER_LEAST);
    for spared in SPARED {
        if needed(shown, least) <= width {
            break;
        }
        shown.retain(|&at| HEADINGS[at] != spared);
    }
    let room = width.saturating_sub(needed(shown, 0));
    widths[SERVER] = room.clamp(least, widths[SERVER]);
}

fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, &str)]) -> Cells {
        HEADINGS.map(|heading| {
            let given = cells.iter().find(|(column, _)| *column == heading);
            given.map_or(NONE, |(_, cell)| *cell).to_owned()
        })
    }

    fn rows() -> [Cells; 2] {
        let gateway = [
            ("ID", "7f3a9a52"),
            ("NAME", "all"),
            ("CLIENT", "claude-code"),
            ("CLIENTS", "12"),
            ("REVISION", "2025-11-25"),
            ("TRANSPORT", "http→stdio"),
            ("PORT", "8900"),
            ("AGE", "3h02m"),
            ("MESSAGES", "48211"),
            ("HELD", "2"),
            ("MODE", "3 rules"),
            ("SERVERS", "8"),
            ("SERVER", "serve --config /home/ann/.config/mcp-proxy/gateway.json"),
        ];
        let mut other = gateway;
        (other[0], other[6], other[12]) = (("ID", "0c3f9a52"), ("PORT", "-"), ("SERVER", "npx server-everything"));
        [row(&gateway), row(&other)]
    }

    #[track_caller]
    fn check(width: usize, headings: &str) {
        let lines = lines(&rows(), Some(width));
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>().join(" "), headings, "{lines:#?}");
    }

    #[test]
    fn a_terminal_gets_what_fits() {
        let most = "ID NAME CLIENT CLIENTS REVISION TRANSPORT PORT AGE MESSAGES HELD MODE SERVERS SERVER";
        check(400, &most.replace(" SERVERS", " CONTROLLED BY SERVERS"));
        check(160, most);
        check(120, "ID NAME CLIENT CLIENTS TRANSPORT PORT AGE MESSAGES HELD MODE SERVERS SERVER");
        check(80, "ID NAME CLIENTS PORT AGE HELD MODE SERVERS SERVER");
        check(60, "ID CLIENTS PORT MODE SERVERS SERVER");
        check(20, "ID CLIENTS …");
    }

    #[test]
    fn programs_get_every_column_whole() {
        let lines = lines(&rows(), None);
        assert!(lines[0].contains("CONTROLLED BY") && lines[1].ends_with("gateway.json"), "{lines:#?}");
    }

    #[test]
    fn the_command_takes_the_room_that_is_left() {
        let lines = lines(&rows(), Some(80));
        assert!(lines[1].ends_with('…') && lines[1].chars().count() == 80, "{lines:#?}");
        assert!(lines[2].ends_with("npx server-everyt…"), "{lines:#?}");
    }
}
