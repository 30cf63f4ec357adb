import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import { proxyHeader } from './trusted-peer.ts'

/** What browsers say of requests that a page of ours makes, or a person by hand. */
const OURS = new Set(['same-origin', 'none'])

/**
 * Refuses what a page of another site makes a browser ask, with the cookie that it holds for us. Where the
 * browser says so (`Sec-Fetch-Site`) that counts; else `Origin` must name the host that was asked. Programs
 * send neither.
 */
export function refuseCrossSite(request: Request, trustedProxies: readonly string[]): void {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site !== undefined) {
    if (!OURS.has(site.toLowerCase())) throw otherSite()
    return
  }
  if (origin === undefined) return
  const host = proxyHeader(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host?.toLowerCase()
  if (hostOf(origin) !== host) throw otherSite()
}

function hostOf(origin: string): string | undefined {
  // The browser leaves out a port that its scheme has anyway, as it does in `Host`.
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

function otherSite(): GatewayError {
  return new GatewayError('other_site', 'this was asked by a page of another site')
}
