import { GatewayError } from '../../errors.ts'
import type { Request } from '../../http/request.ts'
import { proxyHeader } from './trusted-peer.ts'

/**
 * Values of the header `Sec-Fetch-Site` in requests by the gateway's own pages, or by the person directly.
 */
const OWN_SITE = new Set(['same-origin', 'none'])

/**
 * Whether a page of another site made the browser send a request with our cookie. `Sec-Fetch-Site` decides if
 * present; otherwise `Origin` must name the requested host. Programs other than browsers send neither.
 */
export function isCrossSite(request: Request, trustedProxies: readonly string[]): boolean {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site !== undefined) return !OWN_SITE.has(site.toLowerCase())
  if (origin === undefined) return false
  const host = proxyHeader(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host?.toLowerCase()
  return hostOf(origin) !== host
}

/** Refuses a request that a page of another site made the browser send with our cookie. */
export function refuseCrossSite(request: Request, trustedProxies: readonly string[]): void {
  if (isCrossSite(request, trustedProxies)) throw otherSite()
}

/**
 * Refuses a request that another site began according to the browser, whatever its credentials. Needed for a
 * GET that changes something, because a page can make a browser send one without the user's consent.
 */
export function refuseRequestOfOtherSite({ headers: { 'sec-fetch-site': site } }: Request): void {
  if (site !== undefined && !OWN_SITE.has(site.toLowerCase())) throw otherSite()
}

function otherSite(): GatewayError {
  return new GatewayError('other_site', 'the request comes from a page of another site')
}

function hostOf(origin: string): string | undefined {
  // Browsers omit the scheme's default port both in `Origin` and in `Host`, so the two can be compared.
  return URL.canParse(origin) ? new URL(origin).host : undefined
}
