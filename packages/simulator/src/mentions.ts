import { COMMON_WORDS } from './topic.ts'

/** A text that a message contains, and its position. */
export interface Mention {
  readonly text: string
  /** Offset in the message, in characters. */
  readonly at: number
}

/** The texts in a message that may serve as arguments of a tool. */
export interface Mentions {
  /** Words, as written. */
  readonly words: readonly Mention[]
  /** Quoted texts that are not paths. */
  readonly quoted: readonly Mention[]
  readonly paths: readonly Mention[]
  readonly urls: readonly Mention[]
  /** Patterns of file names, such as `*.md`. */
  readonly globs: readonly Mention[]
  /** Words with a digit, such as `A-1234`. */
  readonly identifiers: readonly Mention[]
  /** Command line that the message asks to run; undefined if there is none. */
  readonly command: string | undefined
}

// Maximum number of characters of a message that are searched, from its beginning.
const MAX_MESSAGE = 8000
const QUOTED =
  /"([^"\n]{1,2000})"|“([^“”\n]{1,2000})”|`([^`\n]{1,2000})`|(?<![\p{L}\p{N}])'([^'\n]{1,2000})'/gu
const URL_TEXT = /\bhttps?:\/\/[^\s"'`<>]{1,2000}/g
const TOKEN = /\S+/g
/** Matches file names: with an extension, or well-known names without one. */
const FILE = /^[\w@+~-][\w.@+~-]*\.[A-Za-z]\w{0,9}$|^\.\w[\w.-]*$|^(?:README|LICENSE|Makefile|Dockerfile)$/
const ABBREVIATION = /^(?:[a-z]\.[a-z]|etc)$/i
/** Matches a command line without quotes, by the name of its program. */
const PROGRAMS =
  /\b(?:run|execute) ((?:ls|pwd|cat|echo|date|whoami|uname|git|npm|npx|node|python3?|make|grep|head|tail|wc)(?![\w.])[^\n]{0,200})/i
/** Matches a task that a shell can do if there is no special tool for it. */
const LIST = /\blist (?:all |the |my |of ){0,3}files\b/i
const RUN_QUOTED = /\b(?:run|execute)(?: the)?(?: command| script)?:? ["“`]([^"”`\n]{1,2000})["”`]/i

/** Finds the mentions in a message. Quotation marks around the whole message are ignored. */
export function mentionsIn(message: string): Mentions {
  const text = unwrapped(message.slice(0, MAX_MESSAGE))
  const urls = [...text.matchAll(URL_TEXT)].map(({ 0: url, index }) => ({
    text: url.replace(/[.,;:!?)\]]$/, ''),
    at: index,
  }))
  const inQuotes = [...text.matchAll(QUOTED)].map(({ 1: a, 2: b, 3: c, 4: d, index }) => ({
    text: a ?? b ?? c ?? d ?? '',
    at: index,
  }))
  const inPlain = text.replaceAll(QUOTED, blank).replaceAll(URL_TEXT, blank)
  const tokens = [...inPlain.matchAll(TOKEN)].map(({ 0: token, index }) => ({ text: bare(token), at: index }))
  const plainPaths = tokens.filter((one) => isPath(one.text))
  // A quoted text may be a path with spaces, but only if nothing else in the message is a path.
  const isQuotedPath = ({ text: quoted }: Mention): boolean =>
    isPath(plainPaths.length === 0 ? quoted.replaceAll(' ', '_') : quoted)
  return {
    words: [...text.matchAll(/[\p{L}\p{N}_]+/gu)].map(({ 0: word, index }) => ({ text: word, at: index })),
    quoted: inQuotes.filter((one) => !isQuotedPath(one)),
    paths: [...inQuotes.filter(isQuotedPath), ...plainPaths].toSorted((a, b) => a.at - b.at),
    urls,
    globs: tokens.filter((one) => /^[\w./*?-]{0,200}\*[\w./*?{},-]{1,200}$/.test(one.text)),
    identifiers: tokens
      .map(({ text: token, at }) => ({ text: token.replace(/^#/, ''), at }))
      .filter((one) => /^[\w-]{1,80}$/.test(one.text) && /\d/.test(one.text)),
    command: commandIn(text),
  }
}

/** Removes the quotation marks around a whole message, which some agents add. */
function unwrapped(message: string): string {
  const text = message.trim()
  const [first, last] = [text.at(0), text.at(-1)]
  const inner = text.slice(1, -1)
  return text.length > 1 && first === '"' && last === '"' && !inner.includes('"') ? inner : text
}

function blank(found: string): string {
  return ' '.repeat(found.length)
}

/** Removes the punctuation around a word; also `@`, with which some agents mark files. */
function bare(token: string): string {
  return token
    .replace(/^[([{<@]/, '')
    .replace(/[\])}>.,;:!?]{1,3}$/, '')
    .replace(/['’]s$/, '')
}

function isPath(text: string): boolean {
  if (text.length > 400 || text.includes('://') || ABBREVIATION.test(text)) return false
  if (/^(?:\/|\.{1,2}\/|~\/|[A-Za-z]:\\)[^\s*]/.test(text)) return true
  const [name = '', ...folders] = text.split('/').toReversed()
  if (FILE.test(folders.length > 0 ? name : text)) return !/[*?]/.test(text)
  // Folders end in a slash, as in `src/`.
  return name === '' && folders.length > 0 && folders.every((folder) => /^[\w.@-]+$/.test(folder))
}

function commandIn(text: string): string | undefined {
  const quoted = RUN_QUOTED.exec(text)?.[1]
  if (quoted !== undefined) return quoted
  if (LIST.test(text)) return 'ls'
  const [command] = (PROGRAMS.exec(text)?.[1] ?? '').split(/[,;?!] |[.?!]$| (?:and|then|to see|in the) /)
  return command?.trim() || undefined
}

/** Stems of a message's words, in lower case. */
export function wordStemsOf({ words }: Mentions): Mention[] {
  return words.map(({ text, at }) => ({ text: stem(text.toLowerCase()), at }))
}

/** Stems of the words that carry meaning. */
export function meaningfulStems({ words, ...rest }: Mentions): Mention[] {
  return wordStemsOf({ words: words.filter(({ text }) => !COMMON_WORDS.has(text.toLowerCase())), ...rest })
}

/** Strips endings, so that `cities` matches `city`, and `reads` matches `read`. */
export function stem(word: string): string {
  const short = word.replace(/(?:ies|y|es|s|ing|ed|e)$/, '')
  return short.length < 2 ? word : short
}
