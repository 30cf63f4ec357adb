/** A string, a bracket, a comma, a colon, or any other token of JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/**
 * Lays JSON text out over lines. Nothing is parsed: the order of members, the form of a number and every
 * escape stay as they are, so that texts which differ in any of these differ.
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
