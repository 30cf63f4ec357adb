/** Parameters of a path by name, as they were written. */
export type PathParams = Readonly<Record<string, string>>

/**
 * Reads paths such as `/api/token/:id/key`, where `:id` is one segment that is not empty. A path is matched as the caller
 * wrote it: no decoding, no dot segments, no slash too many.
 */
export function pathPattern(path: string): (given: string) => PathParams | undefined {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const literal = path.split(/:\w+/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${literal.join('([^/]+)')}$`)
  return (given) => {
    const found = expression.exec(given)
    return found ? Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? ''])) : undefined
  }
}
