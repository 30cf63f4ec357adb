import { GatewayError } from '../../errors.ts'
import type { HeaderName, Request } from '../../http/request.ts'

/**
 * Locations in which an API key is accepted, in the order in which they are read. `bearer`: an
 * `Authorization: Bearer` header. `x-api-key`: that header, then the bearer. `model-list`: `x-api-key`,
 * `x-goog-api-key`, then the bearer. `alternate`: the locations of `alternateKey`, then the bearer. `any`:
 * `x-api-key`, the locations of `alternateKey`, then the bearer. `docs/api.md: Authentication`.
 */
export type KeyLocations = 'bearer' | 'x-api-key' | 'model-list' | 'alternate' | 'any'

const BEARER = /^bearer +(\S+) *$/i

/** Headers that the error names if no key was sent. */
const HEADERS: Readonly<Record<KeyLocations, string>> = {
  bearer: '"Authorization: Bearer sk-…"',
  'x-api-key': '"x-api-key: sk-…" or "Authorization: Bearer sk-…"',
  'model-list': '"Authorization: Bearer sk-…", "x-api-key: sk-…" or "x-goog-api-key: sk-…"',
  alternate: '"x-goog-api-key: sk-…" or "Authorization: Bearer sk-…"',
  any: '"Authorization: Bearer sk-…", "x-api-key: sk-…" or "x-goog-api-key: sk-…"',
}

/** Returns the key of a request, as sent. Throws `missing_api_key` if there is none. */
export function requireKey(request: Request, locations: KeyLocations): string {
  const key = keyFromRequest(request, locations)
  if (key !== undefined && key !== '') return key
  throw new GatewayError(
    'missing_api_key',
    `no API key was given; it is expected in the header ${HEADERS[locations]}`,
  )
}

/** Returns the key of a request, as sent; undefined or empty if there is none. */
export function keyFromRequest(request: Request, locations: KeyLocations): string | undefined {
  switch (locations) {
    case 'bearer':
      return bearerKey(request.headers.authorization)
    case 'x-api-key':
      return headerText(request, 'x-api-key') ?? bearerKey(request.headers.authorization)
    case 'model-list':
      return (
        headerText(request, 'x-api-key') ??
        headerText(request, 'x-goog-api-key') ??
        bearerKey(request.headers.authorization)
      )
    case 'alternate':
      return alternateKey(request) ?? bearerKey(request.headers.authorization)
    case 'any':
      return (
        headerText(request, 'x-api-key') ?? alternateKey(request) ?? bearerKey(request.headers.authorization)
      )
  }
}

/**
 * Returns a key in the locations that Gemini clients use: the header `x-goog-api-key` (also accepted as
 * `x-alt-api-key`), or `key` in the query.
 */
export function alternateKey(request: Request): string | undefined {
  return (
    headerText(request, 'x-alt-api-key') ?? headerText(request, 'x-goog-api-key') ?? queryKey(request.url)
  )
}

/** The key in an `Authorization: Bearer …` header, if there is one. */
export function bearerKey(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
}

/** Value of a header; undefined if missing or empty. */
export function headerText({ headers }: Request, name: HeaderName): string | undefined {
  const given = headers[name]
  return given !== undefined && given !== '' ? given : undefined
}

function queryKey(url: string): string | undefined {
  const start = url.indexOf('?')
  return (start === -1 ? undefined : new URLSearchParams(url.slice(start)).get('key')) || undefined
}
