/** Parameters of a path by name, undecoded. */
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
