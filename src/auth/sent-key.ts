import { GatewayError } from '../errors.ts'
import type { HeaderName } from '../server/header-names.ts'
import type { Request } from '../server/request.ts'
import { bearerKey } from './bearer.ts'

/**
 * Where an API key may be: a bearer's alone; in `x-api-key` too, which then wins; in the alternate vendor's
 * places too, which win; or in any of them, first `x-api-key`, then the alternate vendor's. `docs/api.md:
 * Authentication`.
 */
export type KeyLocations = 'bearer' | 'x-api-key' | 'alternate' | 'any'

/** Headers to name to those who sent no key. */
const HEADERS: Readonly<Record<KeyLocations, string>> = {
  bearer: '"Authorization: Bearer sk-…"',
  'x-api-key': '"x-api-key: sk-…" or "Authorization: Bearer sk-…"',
  alternate: '"x-goog-api-key: sk-…" or "Authorization: Bearer sk-…"',
  any: '"Authorization: Bearer sk-…", "x-api-key: sk-…" or "x-goog-api-key: sk-…"',
}

/**
 * The key that came with a request, as it was sent; where none is in any of the places, a `missing_api_key`.
 */
export function requireKey(request: Request, places: KeyLocations): string {
  const key = sentKey(request, places)
  if (key !== undefined && key !== '') return key
  throw new GatewayError(
    'missing_api_key',
    `no API key was given; it is expected in the header ${HEADERS[places]}`,
  )
}

function sentKey(request: Request, places: KeyLocations): string | undefined {
  switch (places) {
    case 'bearer':
      return bearerKey(request.headers.authorization)
    case 'x-api-key':
      return headerText(request, 'x-api-key') ?? bearerKey(request.headers.authorization)
    case 'alternate':
      return alternateKey(request) ?? bearerKey(request.headers.authorization)
    case 'any':
      return (
        headerText(request, 'x-api-key') ?? alternateKey(request) ?? bearerKey(request.headers.authorization)
      )
  }
}

/**
 * A key in the alternate vendor's places: `x-alt-api-key`, which real clients call `x-goog-api-key`, or `key`
 * in the query.
 */
export function alternateKey(request: Request): string | undefined {
  return (
    headerText(request, 'x-alt-api-key') ?? headerText(request, 'x-goog-api-key') ?? queryKey(request.url)
  )
}

/** A header's text; undefined where it is missing or empty. */
export function headerText({ headers }: Request, name: HeaderName): string | undefined {
  const given = headers[name]
  return given !== undefined && given !== '' ? given : undefined
}

function queryKey(url: string): string | undefined {
  const start = url.indexOf('?')
  return (start === -1 ? undefined : new URLSearchParams(url.slice(start)).get('key')) || undefined
}
