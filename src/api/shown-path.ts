const LONGEST = 200

/** A key as callers write it, and any run of letters and digits that is as long as one. */
const KEY = /sk-[^/]*|[0-9a-z]{32,}/gi
const UNSAFE = /[^\w/.~%:@+,=…-]/g

/** A path as it may be told and logged: at most 200 characters, no markup, and nothing that may be a key. */
export function shownPath(path: string): string {
  return path
    .replace(KEY, (found) => (/^sk-/i.test(found) ? 'sk-…' : '…'))
    .replace(UNSAFE, '?')
    .slice(0, LONGEST)
}
