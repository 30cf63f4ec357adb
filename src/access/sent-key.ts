import type { HeaderName } from '../server/header-names.ts'
import type { Request } from '../server/request.ts'
import { bearerKey } from './bearer.ts'

/**
 * Where an API key may be: a bearer's alone; in `x-api-key` too, which then wins; in the alternate vendor's places too, which
 * win; or in any of them, first `x-api-key`, then the alternate vendor's. `docs/api.md: Authentication`.
 */
export type KeyPlaces = 'bearer' | 'x-api-key' | 'alternate' | 'any'

/** The key that came with a request, as it was sent; undefined where none is in any of the places. */
export function sentKey(request: Request, places: KeyPlaces): string | undefined {
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

/** A key in the alternate vendor's places: `x-alt-api-key`, which real clients call `x-goog-api-key`, or `key` in the query. */
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
