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

/** How an example is chosen: which alternative, whether parts are in it that may be missing, and letters of classes. */
export interface Choice {
  readonly alternative: number
  readonly isLong: boolean
  /** Letters in the order in which classes take them. */
  readonly letters: string
}

/**
 * A text that an expression matches, except that no assertion is looked at, such as `\\b` or a lookahead.
 */
export function exampleOf({ source, flags }: Pick<Literal, 'source' | 'flags'>, choice: Choice): string {
  const tokens = source.match(flags.includes('v') ? NESTED_TOKEN : TOKEN) ?? []
  const groups: string[] = []
  let at = 0
  const letterOf = (token: string): string => {
    const matcher = new RegExp(`^${token}$`, flags.replaceAll(/[gy]/g, ''))
    return [...Array.from(choice.letters), ...OTHER_LETTERS].find((letter) => matcher.test(letter)) ?? ''
  }
  const alternatives = (): string => {
    const found = ['']
    while (at < tokens.length && tokens[at] !== ')') {
      if (tokens[at] === '|') {
        found.push('')
        at += 1
      } else found.push((found.pop() ?? '') + repeatedPart())
    }
    at += 1
    return found[choice.alternative % found.length] ?? ''
  }
  const repeatedPart = (): string => {
    const part = onePart()
    const quantifier = /^(?:[*+?]|\{(\d+),?\d*\})\??$/.exec(tokens[at] ?? '')
    if (!quantifier) return part
    at += 1
    const least = quantifier[0].startsWith('+') ? 1 : Number(quantifier[1] ?? 0)
    return part.repeat(Math.max(least, choice.isLong ? 1 : 0))
  }
  const onePart = (): string => {
    const token = tokens[at++] ?? ''
    if (token.startsWith('(')) {
      const isCaptured = token === '(' || token.endsWith('>')
      const number = isCaptured ? groups.push('') : 0
      const part = alternatives()
      if (isCaptured) groups[number - 1] = part
      return /[=!]$/.test(token) ? '' : part
    }
    if (/^\\[1-9]/.test(token)) return groups[Number(token.slice(1)) - 1] ?? ''
    if (['^', '$', '\\b', '\\B'].includes(token)) return ''
    return /^[\\[.]/.test(token) ? letterOf(token) : token
  }
  return alternatives()
}

const GROUP = String.raw`\((?:\?(?:<?[=!]|:|<\w+>))?`
const QUANTIFIER = String.raw`(?:[*+?]|\{\d+,?\d*\})\??`
const ESCAPED = String.raw`\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|\d+|[^])`
const CLASS = String.raw`\[(?:\\[^]|[^\]\\])*\]`
const NESTED_CLASS = String.raw`\[(?:\\[^]|${CLASS}|[^\]\\])*\]`
const TOKEN = new RegExp(`${GROUP}|${QUANTIFIER}|${ESCAPED}|${CLASS}|[^]`, 'gu')
const NESTED_TOKEN = new RegExp(`${GROUP}|${QUANTIFIER}|${ESCAPED}|${NESTED_CLASS}|[^]`, 'gu')
/** Letters of classes that have none of the chosen ones. */
const OTHER_LETTERS = [
  ...Array.from({ length: 0x600 }, (_, code) => String.fromCharCode(code)),
  '\u200b',
  '世',
  '😀',
]
