import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import { proxyHeader } from './trusted-peer.ts'

/** Values of `Sec-Fetch-Site` for requests by our own pages or by the person directly. */
const OWN_SITE = new Set(['same-origin', 'none'])

/**
 * Refuses a request that a page of another site made the browser send with our cookie. `Sec-Fetch-Site`
 * decides if present, else `Origin` must name the requested host. Programs send neither.
 */
export function refuseCrossSite(request: Request, trustedProxies: readonly string[]): void {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site !== undefined) {
    if (!OWN_SITE.has(site.toLowerCase())) throw crossSite()
    return
  }
  if (origin === undefined) return
  const host = proxyHeader(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host?.toLowerCase()
  if (hostOf(origin) !== host) throw crossSite()
}

function hostOf(origin: string): string | undefined {
  // Browsers omit the scheme's default port here and in `Host`.
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

function crossSite(): GatewayError {
  return new GatewayError('other_site', 'the request comes from a page of another site')
}
