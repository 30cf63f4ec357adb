import { isTerm } from '@sluice/wire/protocol-words'
import type { HeaderName, Headers } from '../../../http/request.ts'

/** Version of the messages protocol if the client names none. `docs/api.md: Versioning`. */
const DEFAULT_VERSION = '2023-06-01'

/** Maximum length of a header value that is forwarded. */
const MAX_LENGTH = 1024

/**
 * Headers of a messages request for its upstream; names and values alternate. The version is sent both under
 * the name in the specification and under the one that official clients use; the beta features are those that
 * the client requested. Only words are forwarded, because headers are not checked.
 */
export function versionHeaders(headers: Headers): string[] {
  const version = value(headers, 'vendor-version') ?? value(headers, 'anthropic-version') ?? DEFAULT_VERSION
  const beta = value(headers, 'anthropic-beta')
  return [
    'anthropic-version',
    version,
    'vendor-version',
    version,
    ...(beta === undefined ? [] : ['anthropic-beta', beta]),
  ]
}

function value(headers: Headers, name: HeaderName): string | undefined {
  const given = headers[name]
  if (given === undefined || given === '' || given.length > MAX_LENGTH) return undefined
  return given.split(',').every((word) => isTerm(word.trim())) ? given : undefined
}
