/** Parameters of a path by name, undecoded. */
export type PathParams = Readonly<Record<string, string>>

/**
 * A matcher for paths such as `/api/token/:id/key`, where `:id` is one nonempty segment, and
 * `/v1/models/:id*`, where it is the rest of the path, slashes included. Paths are matched undecoded: no dot
 * segments, no extra slash.
 */
export function pathPattern(path: string): (given: string) => PathParams | undefined {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const pieces = path.split(/(:\w+\*?)/).map((piece) => {
    if (piece.startsWith(':')) return piece.endsWith('*') ? '(.+)' : '([^/]+)'
    return piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  const expression = new RegExp(`^${pieces.join('')}$`)
  return (given) => {
    const found = expression.exec(given)
    return found ? Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? ''])) : undefined
  }
}
