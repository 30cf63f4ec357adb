import { isIP } from 'node:net'
import { isLoopback, parseAddresses } from '../domain/ip-allow-list.ts'
import { hostOf } from '../domain/metadata-address.ts'

/** The variables of the environment that name proxies, as `docs/configuration.md: Environment` has them. */
export interface ProxyVariables {
  /** URLs of the proxies for `http:` and for `https:` addresses; undefined without one. */
  readonly http: string | undefined
  readonly https: string | undefined
  /** Hosts that are called directly, as curl reads `NO_PROXY`. */
  readonly except: string
}

/** Returns the URL of the proxy for an address; undefined if it is called directly. */
export type ProxyOfAddress = (url: URL) => string | undefined

/** Addresses of private networks, which no proxy is for. */
const isPrivate = parseAddresses([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  'fc00::/7',
  'fe80::/10',
])

/** The rule for channels without a proxy: loopback and private addresses, and exceptions, go directly. */
export function environmentProxies({ http, https, except }: ProxyVariables): ProxyOfAddress {
  if (http === undefined && https === undefined) return () => undefined
  const isExcepted = exceptions(except)
  return (url) => {
    const proxy = url.protocol === 'https:' ? https : http
    const host = hostOf(url).toLowerCase().replace(/\.$/, '')
    return proxy === undefined || isLocal(host) || isExcepted(host) ? undefined : proxy
  }
}

function isLocal(host: string): boolean {
  return isIP(host) === 0 ? /(?:^|\.)localhost$/.test(host) : isLoopback(host) || (isPrivate?.(host) ?? true)
}

/**
 * The hosts of `NO_PROXY`: names with everything below them, addresses, ranges, or `*` alone for all. As in
 * curl, a dot at either end of a name means nothing, and ports are not compared.
 */
function exceptions(list: string): (host: string) => boolean {
  if (list.trim() === '*') return () => true
  const entries = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
  const ranges = entries.flatMap((entry) => parseAddresses([entry.replace(/^\[|\]$/g, '')]) ?? [])
  const names = entries.map((entry) => entry.replace(/^\.|\.$/g, '')).filter(Boolean)
  return (host) =>
    isIP(host) === 0
      ? names.some((name) => host === name || host.endsWith(`.${name}`))
      : ranges.some((contains) => contains(host))
}
