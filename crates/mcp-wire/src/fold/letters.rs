//! Letters that look like plain ones. A name may be written with them to look like another name, or
//! not to be found by a rule; here they are read as what a person would see.

use std::sync::LazyLock;

use crate::visible::is_deceptive;

/// What a character is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    As(u8),
    /// It cannot be seen: the letters around it belong together.
    Nothing,
    /// It looks like none of ours.
    Unknown,
}

pub fn fold(c: char) -> Folded {
    match c {
        ' '..='~' => Folded::As(c as u8),
        '\0'..='\x1f' | '\x7f' => Folded::Nothing,
        // Accents that are characters of their own, and variants.
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => Folded::Nothing,
        c if is_deceptive(c) => Folded::Nothing,
        c => looks_like(c).map_or(Folded::Unknown, Folded::As),
    }
}

fn looks_like(c: char) -> Option<u8> {
    let code = c as u32;
    Some(match code {
        // Fullwidth forms are ASCII, moved.
        0xff01..=0xff5e => (code - 0xff01 + 0x21) as u8,
        0x24b6..=0x24cf => b'A' + (code - 0x24b6) as u8,
        0x24d0..=0x24e9 => b'a' + (code - 0x24d0) as u8,
        // Mathematical alphabets: capitals and small letters, over and over.
        0x1d400..=0x1d6a3 => match (code - 0x1d400) % 52 {
            capital @ 0..26 => b'A' + capital as u8,
            small => b'a' + (small - 26) as u8,
        },
        0x2010..=0x2015 | 0x2212 => b'-',
        0x2044 | 0x2215 => b'/',
        0xa0 | 0x2000..=0x200a | 0x202f | 0x3000 => b' ',
        _ => BY_CODE.binary_search_by_key(&c, |(alike, _)| *alike).ok().map(|at| BY_CODE[at].1)?,
    })
}

/// The table below, to be searched: text can be long, and its sender means no good.
static BY_CODE: LazyLock<Vec<(char, u8)>> = LazyLock::new(|| {
    let letters = LETTERS.iter().flat_map(|(letter, alike)| alike.chars().map(|c| (c, *letter)));
    let mut by_code: Vec<(char, u8)> = letters.collect();
    by_code.sort_unstable();
    by_code
});

/// Letters with accents, and those of other alphabets that look the same in most typefaces.
const LETTERS: &[(u8, &str)] = &[
    (b'a', "àáâãäåāăąǎȁȃạảаɑα"),
    (b'A', "ÀÁÂÃÄÅĀĂĄАΑ"),
    (b'b', "ƀɓЬьβ"),
    (b'B', "ВΒ"),
    (b'c', "çćĉċčсϲⅽ"),
    (b'C', "ÇĆĈĊČСϹⅭ"),
    (b'd', "ďđԁɗɖⅾ"),
    (b'D', "ĎĐⅮ"),
    (b'e', "èéêëēĕėęěẹẻẽеёєҽε"),
    (b'E', "ÈÉÊËĒĔĖĘĚЕЁΕ"),
    (b'f', "ƒ"),
    (b'g', "ĝğġģǧɡɢ"),
    (b'G', "ĜĞĠĢ"),
    (b'h', "ĥħһհ"),
    (b'H', "ĤĦНΗ"),
    (b'i', "ìíîïĩīĭįıіїɩιⅰ"),
    (b'I', "ÌÍÎÏĨĪĬĮİІЇΙⅠ"),
    (b'j', "ĵјϳ"),
    (b'J', "ĴЈ"),
    (b'k', "ķкκ"),
    (b'K', "ĶКΚ"),
    (b'l', "ĺļľŀłӏⅼ"),
    (b'L', "ĹĻĽĿŁⅬ"),
    (b'm', "мⅿ"),
    (b'M', "МΜⅯ"),
    (b'n', "ñńņňŉոη"),
    (b'N', "ÑŃŅŇΝ"),
    (b'o', "òóôõöøōŏőơọỏоοσօ"),
    (b'O', "ÒÓÔÕÖØŌŎŐОΟՕ"),
    (b'p', "рρ"),
    (b'P', "РΡ"),
    (b'q', "ԛզ"),
    (b'Q', "Ԛ"),
    (b'r', "ŕŗřг"),
    (b'R', "ŔŖŘ"),
    (b's', "śŝşšșѕʂ"),
    (b'S', "ŚŜŞŠЅ"),
    (b't', "ţťŧțтτ"),
    (b'T', "ŢŤŦТΤ"),
    (b'u', "ùúûüũūŭůűųụủսυ"),
    (b'U', "ÙÚÛÜŨŪŬŮŰŲՍ"),
    (b'v', "ѵνⅴ"),
    (b'V', "ѴⅤ"),
    (b'w', "ŵԝωѡ"),
    (b'W', "ŴԜ"),
    (b'x', "хχⅹ"),
    (b'X', "ХΧⅩ"),
    (b'y', "ýÿŷуγү"),
    (b'Y', "ÝŸŶУΥҮ"),
    (b'z', "źżžᴢ"),
    (b'Z', "ŹŻŽΖ"),
    (b'_', "ˍ‿"),
    (b'.', "․"),
    (b':', "։∶"),
];
