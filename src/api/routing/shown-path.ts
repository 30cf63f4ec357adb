const MAX_LENGTH = 200

/** An API key, or any run of letters and digits of that length. */
const KEY = /sk-[^/]*|[0-9a-z]{32,}/gi
const UNSAFE = /[^\w/.~%:@+,=…-]/g

/**
 * Percent-encoded letters, digits, hyphens and percent signs, also if encoded repeatedly: keys could hide in
 * these.
 */
const ESCAPED = /%(?:25)*(2[5d]|3\d|[46][1-9a-f]|[57][0-9a])/gi
/** Number of decoding passes before a nested encoding is given up. */
const MAX_PASSES = 5

/**
 * Paths without markup and without anything like a key. Most paths are; this one test is cheaper than the
 * replacements.
 */
const PLAIN = /^(?!.*(?:sk-|[0-9a-z]{32}))[\w/.~:@+,=-]*$/i

/**
 * Prepares a path for messages and logs: at most 200 characters, without markup and without keys in any
 * encoding.
 */
export function shownPath(path: string): string {
  return path.length <= MAX_LENGTH && PLAIN.test(path) ? path : redacted(path)
}

function redacted(path: string): string {
  return unescaped(path)
    .replace(KEY, (found) => (/^sk-/i.test(found) ? 'sk-…' : '…'))
    .replace(UNSAFE, '?')
    .slice(0, MAX_LENGTH)
}

/** The path with its escapes decoded; `…` if they are nested too deeply. */
function unescaped(path: string): string {
  let text = path
  for (let i = 0; i < MAX_PASSES; i++) {
    const before = text
    text = before.replace(ESCAPED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (text === before) return text
  }
  return '…'
}
