import type { Settings } from '../domain/settings.ts'
import type { RelayedRequest } from './dialects/dialect.ts'

/** Suffixes by which routers choose other providers and prices, or search the web at a price of its own. */
const SUFFIXES = [':online', ':nitro', ':floor'] as const

/**
 * The request for the model without suffixes of routers, which are listed; the request itself where a channel
 * serves the model under the name with the suffix, or where only that model can take it.
 * `docs/api.md: Other models and prices`.
 */
export function withoutModelSuffix(request: RelayedRequest, { channels }: Settings): RelayedRequest {
  const dropped: string[] = []
  let name = request.model
  for (;;) {
    const suffix = SUFFIXES.find((one) => name.endsWith(one))
    if (suffix === undefined || channels.some(({ models }) => models.includes(name))) break
    name = name.slice(0, -suffix.length)
    dropped.unshift(suffix)
  }
  const plain = dropped.length > 0 ? request.forModel?.(name) : undefined
  return plain ? withDropped(plain, dropped) : request
}

function withDropped(request: RelayedRequest, dropped: readonly string[]): RelayedRequest {
  return {
    ...request,
    dropped,
    forModel: (name) => withDropped(request.forModel?.(name) ?? request, dropped),
  }
}
