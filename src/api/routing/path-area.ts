import type { Area } from '../envelopes.ts'

/** Model lists of the alternate vendor whose errors have the usual shape. */
const LISTS = /^\/v1beta\/(?:models$|openai\/)/

/** The area of a path that no endpoint has, which decides the envelope of errors. `docs/api.md: Errors`. */
export function pathArea(path: string): Area {
  if (path.startsWith('/api/')) return 'management'
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return 'messages'
  return (path.startsWith('/v1beta/') && !LISTS.test(path)) || isModelMethod(path) ? 'gemini' : 'relay'
}

/**
 * A method follows a colon. Below `/v1` it must contain a capital letter, because model names may contain
 * colons too.
 */
const METHOD = /^\/(?:v1beta\/models\/.+(?::|%3[Aa])\w+|v1\/models\/.+(?::|%3[Aa])[a-z]+[A-Z]\w*)$/

/** Whether a path names a method of a model. */
export function isModelMethod(path: string): boolean {
  return METHOD.test(path)
}

/** Returns the path of a request target, undecoded, without its query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
