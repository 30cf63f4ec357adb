import type { Options } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { Request } from '../../server/request.ts'
import { isSecureRequest } from '../session-cookie.ts'
import { proxyHeader } from '../trusted-peer.ts'

/** Origin under which the browser reaches the gateway: `options.public_url`, or that of the request. */
export function publicOrigin(
  request: Request,
  { public_url: publicUrl, trusted_proxies: trustedProxies }: Pick<Options, 'public_url' | 'trusted_proxies'>,
): string {
  if (publicUrl !== '') return publicUrl
  const scheme = isSecureRequest(request, trustedProxies) ? 'https' : 'http'
  const host = proxyHeader(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host ?? ''
  const url = URL.parse(`${scheme}://${host}`)
  if (!url || url.pathname !== '/' || url.username !== '' || url.search !== '')
    throw new GatewayError('invalid_request', 'Host: expected the name that the gateway is reached by')
  return url.origin
}
