import { parseCookie, type SetCookie, stringifySetCookie } from 'cookie'
import type { Options } from '../../domain/options.ts'
import type { Request } from '../../http/request.ts'
import { isSecureRequest } from './trusted-peer.ts'

/** Lifetime of a session: 30 days. */
export const SESSION_SECONDS = 30 * 86_400

/** Format of a session's secret, the value of the cookie: 32 bytes as base64url. */
const SESSION = /^[\w-]{43}$/

const NAME = 'session'

/** The session in a request's cookie; undefined if it is missing or malformed. */
export function sessionFromCookie({ headers: { cookie } }: Request): string | undefined {
  const session = cookie === undefined ? undefined : parseCookie(cookie)[NAME]
  return session !== undefined && SESSION.test(session) ? session : undefined
}

/** Whether cookies of the gateway are marked for TLS only. */
export function hasSecureCookies(
  request: Request,
  { public_url: publicUrl, trusted_proxies: trustedProxies }: Pick<Options, 'public_url' | 'trusted_proxies'>,
): boolean {
  return publicUrl.startsWith('https:') || isSecureRequest(request, trustedProxies)
}

/** Returns the `Set-Cookie` header that sets a session, or deletes it if `session` is undefined. */
export function sessionCookie(
  request: Request,
  session: string | undefined,
  options: Pick<Options, 'public_url' | 'trusted_proxies' | 'base_path'>,
): string {
  const cookie: SetCookie = {
    name: NAME,
    value: session ?? '',
    httpOnly: true,
    sameSite: 'strict',
    path: options.base_path || '/',
    secure: hasSecureCookies(request, options),
    maxAge: session === undefined ? 0 : SESSION_SECONDS,
  }
  return stringifySetCookie(cookie)
}
