import { parseCookie, type SetCookie, stringifySetCookie } from 'cookie'
import type { Request } from '../server/request.ts'
import { proxyHeader } from './trusted-peer.ts'

/** How long a session lasts: 30 days. */
export const SESSION_SECONDS = 30 * 86_400

/** What a session of ours looks like: 32 bytes as base64url. */
const SESSION = /^[\w-]{43}$/

const NAME = 'session'

/** The session in a request's cookie; undefined if there is none, or nothing that could be one. */
export function sessionOf({ headers: { cookie } }: Request): string | undefined {
  const session = cookie === undefined ? undefined : parseCookie(cookie)[NAME]
  return session !== undefined && SESSION.test(session) ? session : undefined
}

/** The header that gives a browser its session, or (with undefined) takes it away. */
export function sessionCookie(
  request: Request,
  session: string | undefined,
  trustedProxies: readonly string[],
): string {
  const cookie: SetCookie = {
    name: NAME,
    value: session ?? '',
    httpOnly: true,
    sameSite: 'strict',
    path: '/',
    // The gateway itself speaks plain HTTP; TLS ends at a proxy.
    secure: proxyHeader(request, 'x-forwarded-proto', trustedProxies) === 'https',
    maxAge: session === undefined ? 0 : SESSION_SECONDS,
  }
  return stringifySetCookie(cookie)
}
