//! Drawing a tree with lines in front of its names.

/// The lines in front of every row of a tree, given the rows' depths in depth-first order.
///
/// Depths are relative to the first row, whose line is empty. A row whose parents were left out is
/// drawn as deep as it says.
pub fn lines(depths: &[usize]) -> Vec<String> {
    let base = depths.first().copied().unwrap_or(0);
    // For each depth: does another row of the same parent follow? Known when read from the end.
    let mut follows: Vec<bool> = Vec::new();
    let mut lines = vec![String::new(); depths.len()];
    for (line, depth) in lines.iter_mut().zip(depths).rev() {
        let depth = depth.saturating_sub(base);
        follows.resize(depth + 1, false);
        for &open in follows.iter().take(depth).skip(1) {
            line.push_str(if open { "│  " } else { "   " });
        }
        if depth > 0 {
            line.push_str(if follows[depth] { "├─ " } else { "└─ " });
        }
        follows[depth] = true;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_hang_on_one_line_and_the_last_one_ends_it() {
        let drawn = lines(&[0, 1, 2, 2, 1, 2]);
        assert_eq!(drawn, ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ "]);
    }

    #[test]
    fn a_subtree_starts_at_its_own_left_edge() {
        assert_eq!(lines(&[3, 4, 5]), ["", "└─ ", "   └─ "]);
        assert!(lines(&[]).is_empty());
    }
}
