import type { Area } from '../envelopes.ts'

/** The envelope of errors below a path, where no endpoint of its own says it. `docs/api.md: Errors`. */
export function pathArea(path: string): Area {
  if (path.startsWith('/api/')) return 'management'
  return path === '/v1/messages' || path.startsWith('/v1/messages/') ? 'messages' : 'relay'
}

/** The path of an address as it was sent, without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
