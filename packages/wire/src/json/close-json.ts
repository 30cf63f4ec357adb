/**
 * Endings to try on a truncated JSON text so that its brackets can be closed: nothing, a missing value, or a
 * missing colon and value.
 */
const COMPLETIONS = ['', 'null', ':null'] as const

/** Matches if the text begins with a complete escape sequence. */
const WHOLE_ESCAPE = /^\\(?:u[\da-f]{4}|[^u])/i

/**
 * Closes the open strings and brackets of a truncated JSON text. Returns undefined if the result is not JSON.
 */
export function closedJson(beginning: string): string | undefined {
  const open: string[] = []
  let inString = false
  let escapeAt = -1
  for (let at = 0; at < beginning.length; at++) {
    const character = beginning[at]
    if (inString) {
      if (character === '\\') {
        escapeAt = at
        at += beginning[at + 1] === 'u' ? 5 : 1
      } else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{') open.push('}')
    else if (character === '[') open.push(']')
    else if (character === '}' || character === ']') open.pop()
  }
  // A truncated escape sequence is left out.
  const isCut = inString && escapeAt >= 0 && !WHOLE_ESCAPE.test(beginning.slice(escapeAt))
  const whole = isCut ? beginning.slice(0, escapeAt) : beginning
  const text = inString ? `${whole}"` : whole.replace(/,\s*$/, '')
  const brackets = open.toReversed().join('')
  return COMPLETIONS.map((completion) => text + completion + brackets).find(isJson)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
