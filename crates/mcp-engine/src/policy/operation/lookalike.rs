//! Letters that look like plain ones. A name may be written with them to look like another name, or
//! not to be found by a rule; here they are read as what a person would see.

use mcp_wire::visible::is_deceptive;

/// What a character is read as.
pub enum Folded {
    As(u8),
    /// It cannot be seen: the letters around it belong together.
    Nothing,
}

/// Stands for a letter that looks like none of ours.
pub const UNKNOWN: u8 = b'?';

pub fn fold(c: char) -> Folded {
    match c {
        ' '..='~' => Folded::As(c as u8),
        '\0'..='\x1f' | '\x7f' => Folded::Nothing,
        // Accents that are characters of their own, and variants.
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => Folded::Nothing,
        c if is_deceptive(c) => Folded::Nothing,
        c => Folded::As(looks_like(c)),
    }
}

fn looks_like(c: char) -> u8 {
    let code = c as u32;
    match code {
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
        _ => LETTERS.iter().find(|(_, alike)| alike.contains(c)).map_or(UNKNOWN, |(letter, _)| *letter),
    }
}

/// A digit or a capital in place of the letter that it looks like.
pub fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0' => Some(b'o'),
        b'1' | b'I' => Some(b'l'),
        b'3' => Some(b'e'),
        b'4' => Some(b'a'),
        b'5' => Some(b's'),
        b'7' => Some(b't'),
        _ => None,
    }
}

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
