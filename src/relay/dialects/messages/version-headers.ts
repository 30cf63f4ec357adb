import type { HeaderName, Headers } from '../../../server/header-names.ts'

/** The version of the messages protocol that is spoken where nobody names one; `docs/api.md: Versioning`. */
const DEFAULT_VERSION = '2023-06-01'

/** A header's value may be passed on if it could have been written there. */
const PRINTABLE = /^[\x20-\x7e]{1,1024}$/

/**
 * The headers of a messages request that go on to its upstream, names and values in turn: the version under
 * the specification's name and the one that official clients use, and the beta features that are asked for.
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
  return given !== undefined && PRINTABLE.test(given) ? given : undefined
}
