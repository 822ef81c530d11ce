use mcp_control::api::Message;
pub fn sequence(_t: &str) -> Result<String, String> {
    Ok(String::new())
}
pub fn as_curl(_m: &Message, _u: Option<&str>) -> String {
    String::new()
}
pub fn as_printf(_m: &Message) -> String {
    String::new()
}
