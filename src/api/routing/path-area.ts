import type { Area } from '../envelopes.ts'

/** The area of a path that no endpoint has; it decides the envelope of errors. `docs/api.md: Errors`. */
export function pathArea(path: string): Area {
  if (path.startsWith('/api/')) return 'management'
  return path === '/v1/messages' || path.startsWith('/v1/messages/') ? 'messages' : 'relay'
}

/** The path of a request target, undecoded, without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
