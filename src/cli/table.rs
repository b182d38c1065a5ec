use super::screen::one_line;

/// Rows below titles, each cell as wide as the widest of its column when the table began.
#[derive(Debug)]
pub(crate) struct Table {
    widths: Vec<usize>,
}

/// Between two columns, as kubectl has it.
const GAP: usize = 3;

impl Table {
    /// A table that begins with these rows.
    pub(crate) fn new<'a>(
        titles: &[String],
        rows: impl IntoIterator<Item = &'a Vec<String>>,
    ) -> Self {
        let mut widths: Vec<usize> = titles.iter().map(|title| width(title)).collect();
        for row in rows {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = (*column).max(width(cell));
            }
        }
        Self { widths }
    }

    /// One line. `paint` changes how a cell looks, not how wide it is.
    pub(crate) fn line(&self, cells: &[String], paint: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            // What a server said does not get to move the cursor.
            let cell = one_line(cell);
            let shown = if cell.is_empty() { "<none>" } else { &cell };
            line.push_str(&paint(at, shown));
            if at + 1 < cells.len() {
                let wide = self.widths.get(at).copied().unwrap_or_default() + GAP;
                // What has grown since pushes the rest along.
                line.extend(std::iter::repeat_n(' ', wide.saturating_sub(width(shown)).max(1)));
            }
        }
        line.push('\n');
        line
    }
}

fn width(text: &str) -> usize {
    let text = if text.is_empty() { "<none>" } else { text };
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let (titles, first) = (row(["NAME", "READY", "AGE"]), row(["web-1", "", "5s"]));
        let table = Table::new(&titles, [&first]);
        let plain = |cells: &[String]| table.line(cells, |_, cell| cell.to_owned());
        assert_eq!(plain(&titles), "NAME    READY    AGE\n");
        assert_eq!(plain(&first), "web-1   <none>   5s\n");
        assert_eq!(plain(&row(["\x1b[2J", "a\nb", ""])), " [2J    a b      <none>\n");
        assert_eq!(plain(&row(["a-longer-name", "1/1", "5s"])), "a-longer-name 1/1      5s\n");
    }
}
