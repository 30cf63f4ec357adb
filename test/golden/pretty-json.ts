/** A string, a bracket, a comma, a colon, or any other token of JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/**
 * Prints JSON text with line breaks. The text is not parsed: the order of members, the form of numbers and
 * all escapes are unchanged, so that texts which differ in any of these stay different.
 */
export function prettyJson(text: string): string {
  let out = ''
  let depth = 0
  let before = ''
  for (const [token] of text.matchAll(TOKENS)) {
    const closes = token === '}' || token === ']'
    if (closes) depth--
    const isEmpty = closes && (before === '{' || before === '[')
    const breaks = !isEmpty && (closes || before === '{' || before === '[' || before === ',')
    if (breaks) out += `\n${'  '.repeat(depth)}`
    out += before === ':' ? ` ${token}` : token
    if (token === '{' || token === '[') depth++
    before = token
  }
  return `${out}\n`
}
