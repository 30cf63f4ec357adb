import type { ApiArea } from './envelopes.ts'

/** Parameters of a path by name, as they are in the path, without percent-decoding. */
export type PathParams = Readonly<Record<string, string>>

/** Parameters at the beginning of a segment; any other colon is literal. */
const PARAMETER = /(?<=\/)(:\w+\*?)/

/** A colon, literal or percent-encoded. */
const COLON = '(?::|%3[Aa])'

/**
 * Returns a matcher for paths such as `/api/token/:id/key`, where `:id` is one nonempty segment, and
 * `/v1/models/:id*`, where it is the remaining path including slashes, up to the next literal. Paths are
 * matched undecoded, except for a literal colon; dot segments and extra slashes do not match.
 */
export function pathPattern(path: string): (given: string) => PathParams | undefined {
  const names = parameterNames(path)
  const pieces = path.split(PARAMETER).map((piece, index) => {
    if (index % 2 === 1) return piece.endsWith('*') ? '(.+)' : '([^/]+)'
    return piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(':', COLON)
  })
  const expression = new RegExp(`^${pieces.join('')}$`)
  // Comparing the literal beginning first rules out most patterns at a fraction of the cost.
  const [beginning = ''] = path.split(':', 1)
  return (given) => {
    if (!given.startsWith(beginning)) return undefined
    const found = expression.exec(given)
    return found ? Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? ''])) : undefined
  }
}

/** The names of a path's parameters, in order. */
export function parameterNames(path: string): string[] {
  return [...path.matchAll(/(?<=\/):(\w+)/g)].map(([, name = '']) => name)
}

/** Number of characters of a declared path outside its parameters. */
export function literalLength(path: string): number {
  return path.replace(/(?<=\/):\w+\*?/g, '').length
}

/**
 * Whether a path belongs to calls and lists of models or MCP, and not to accounts. Pages of other origins may call such
 * paths. To set a header of every answer on them, see `docs/recipes/add-an-answer-header.md`.
 */
export function isRelayPath(path: string): boolean {
  return (
    path.startsWith('/v1/') ||
    path.startsWith('/v1beta/') ||
    path === '/v2/rerank' ||
    path === '/mcp' ||
    path.startsWith('/mcp/')
  )
}

/** Paths below `/v1beta/` whose errors nevertheless have OpenAI's format. */
const LISTS = /^\/v1beta\/(?:models$|openai\/)/

/**
 * The area of a path that no endpoint has, which decides the format of the error; `relay` for pages of the console and
 * other paths too. `docs/api.md: Errors`.
 */
export function areaOfUnknownPath(path: string, method?: string): ApiArea {
  if (path.startsWith('/api/')) return 'management'
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return 'messages'
  return (path.startsWith('/v1beta/') && !LISTS.test(path)) || isModelMethod(path, method)
    ? 'gemini'
    : 'relay'
}

/** Matches the path of a model's method, such as `:generateContent`. */
const METHOD = /^\/v1(?:beta)?\/models\/.+(?::|%3[Aa])\w+$/
/** Below `/v1` it must contain a capital letter, because names of models that are read may contain colons too. */
const CERTAIN_METHOD = /^\/v1(?:beta\/.+|\/.+(?::|%3[Aa])[a-z]+[A-Z]\w*)$/

/** Whether the path of a request names a method of a model, such as `:generateContent`. */
export function isModelMethod(path: string, method?: string): boolean {
  return METHOD.test(path) && (method === 'POST' || CERTAIN_METHOD.test(path))
}

/** Returns the path of a request's URL without its query, and without percent-decoding. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

const MAX_LENGTH = 200

/** Matches an API key, or any run of letters and digits that is long enough to be one. */
const KEY = /sk-[^/]*|[0-9a-z]{32,}/gi
const UNSAFE = /[^\w/.~%:@+,=…-]/g

/**
 * Matches percent-encoded letters, digits, hyphens and percent signs, even if encoded repeatedly, because
 * keys could be hidden in them.
 */
const ESCAPED = /%(?:25)*(2[5d]|3\d|[46][1-9a-f]|[57][0-9a])/gi

/** Number of decoding passes before a nested encoding is given up. */
const MAX_PASSES = 5

/**
 * Matches paths without markup and without anything like a key. Most paths match, and this one test is
 * cheaper than the replacements.
 */
const PLAIN = /^(?!.*(?:sk-|[0-9a-z]{32}))[\w/.~:@+,=-]*$/i

/**
 * Prepares a path for messages and logs: at most 200 characters, without markup and without keys in any
 * encoding.
 */
export function redactedPath(path: string): string {
  return path.length <= MAX_LENGTH && PLAIN.test(path) ? path : redacted(path)
}

function redacted(path: string): string {
  return unescaped(path)
    .replace(KEY, (found) => (/^sk-/i.test(found) ? 'sk-…' : '…'))
    .replace(UNSAFE, '?')
    .slice(0, MAX_LENGTH)
}

/** The path with percent-encodings decoded; `…` if they are nested too deeply. */
function unescaped(path: string): string {
  let text = path
  for (let i = 0; i < MAX_PASSES; i++) {
    const before = text
    text = before.replace(ESCAPED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (text === before) return text
  }
  return '…'
}
