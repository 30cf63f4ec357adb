/** A regular expression as written in a file. */
export interface Literal {
  readonly line: number
  readonly source: string
  readonly flags: string
}

/** Contexts in which a `/` begins an expression; elsewhere it divides. */
const BEFORE = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|await|yield|void))\s*$/

/** The regular expressions of a TypeScript file; strings, templates and comments are skipped. */
export function literalsIn(text: string): Literal[] {
  const found: Literal[] = []
  /** Number of open braces in each enclosing template. */
  const templates: number[] = []
  let code = ''
  let line = 1
  let at = 0
  const skip = (to: number): void => {
    line += text.slice(at, to).split('\n').length - 1
    at = to
  }
  while (at < text.length) {
    const rest = text.slice(at, at + 2)
    const [letter = ''] = rest
    if (rest === '//') skip(endOf(text, '\n', at))
    else if (rest === '/*') skip(endOf(text, '*/', at + 2) + 2)
    else if (letter === "'" || letter === '"') {
      skip(afterQuoted(text, letter, at + 1))
      code = `''`
    } else if (letter === '`' || (letter === '}' && templates.at(-1) === 0)) {
      if (letter === '}') templates.pop()
      const end = afterTemplate(text, at + 1)
      if (text[end - 1] === '{') templates.push(0)
      code = text[end - 1] === '{' ? '(' : `''`
      skip(end)
    } else if (letter === '/' && BEFORE.test(code)) {
      const end = afterExpression(text, at + 1)
      const flags = /^[a-z]*/.exec(text.slice(end))?.[0] ?? ''
      found.push({ line, source: text.slice(at + 1, end - 1), flags })
      skip(end + flags.length)
      code = `''`
    } else {
      const open = templates.length - 1
      if (letter === '{' && open >= 0) templates[open] = (templates[open] ?? 0) + 1
      if (letter === '}' && open >= 0) templates[open] = (templates[open] ?? 0) - 1
      code = (code + letter).slice(-20)
      skip(at + 1)
    }
  }
  return found
}

function endOf(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from)
  return end < 0 ? text.length : end
}

function afterQuoted(text: string, quote: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** Position after the end of a template, or after the `${` of a value in it. */
function afterTemplate(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '`') {
    if (text[at] === '$' && text[at + 1] === '{') return at + 2
    at += text[at] === '\\' ? 2 : 1
  }
  return at + 1
}

function afterExpression(text: string, from: number): number {
  let at = from
  let isClass = false
  while (at < text.length && (isClass || text[at] !== '/')) {
    if (text[at] === '[') isClass = true
    else if (text[at] === ']') isClass = false
    at += text[at] === '\\' ? 2 : 1
  }
  return at + 1
}
