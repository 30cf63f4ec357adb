const MAX_LENGTH = 200

/** A key as callers write it, and any run of letters and digits that is as long as one. */
const KEY = /sk-[^/]*|[0-9a-z]{32,}/gi
const UNSAFE = /[^\w/.~%:@+,=…-]/g

/**
 * An escape, or an escape of one and so on, of a letter, a digit, a hyphen or a percent sign: keys and
 * escapes are written in these.
 */
const ESCAPED = /%(?:25)*(2[5d]|3\d|[46][1-9a-f]|[57][0-9a])/gi
/** How often escapes are undone that stand in each other in other ways. */
const MAX_PASSES = 5

/**
 * A path as it may be told and logged: at most 200 characters, no markup, and nothing that may be a key, in
 * whatever spelling.
 */
export function shownPath(path: string): string {
  return unescaped(path)
    .replace(KEY, (found) => (/^sk-/i.test(found) ? 'sk-…' : '…'))
    .replace(UNSAFE, '?')
    .slice(0, MAX_LENGTH)
}

/**
 * The path without the escapes in which a key could hide; where they hide each other too well, nothing of it.
 */
function unescaped(path: string): string {
  let text = path
  for (let i = 0; i < MAX_PASSES; i++) {
    const before = text
    text = before.replace(ESCAPED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (text === before) return text
  }
  return '…'
}
