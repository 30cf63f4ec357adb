import { parseCookie, stringifySetCookie } from 'cookie'
import { z } from 'zod'
import type { Options } from '../../../domain/options.ts'
import type { Request } from '../../../http/request.ts'
import { seal, type SealContext, type Secrets, unseal } from '../../../store/secrets.ts'
import { hasSecureCookies } from '../session-cookie.ts'

/** Maximum time from the start of a sign-in to its end. */
const LIFETIME_SECONDS = 600
/** Format of the `state` parameter of OAuth: 32 bytes as base64url. */
const STATE = /^[\w-]{43}$/

const identityLink = z.object({ userId: z.int(), sessionHash: z.string() })

/** A user's session that began a sign-in in order to link the identity to that user. */
export type IdentityLink = z.output<typeof identityLink>

const pendingSignIn = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  redirectUri: z.string(),
  /** Path to go to after the sign-in. */
  next: z.string(),
  /** Session to whose user the identity is to be linked; absent for an ordinary sign-in. */
  link: identityLink.optional(),
  /** When the sign-in expires, in Unix seconds. */
  expiresTime: z.int(),
})

/** A sign-in that has begun, kept encrypted in a cookie of the browser that began it. */
export type PendingSignIn = z.output<typeof pendingSignIn>

/** Time at which a sign-in that begins now expires, in Unix seconds. */
export function pendingSignInExpiry(nowMs: number): number {
  return Math.floor(nowMs / 1000) + LIFETIME_SECONDS
}

type CookieOptions = Pick<Options, 'public_url' | 'trusted_proxies' | 'base_path'>

/** Returns the `Set-Cookie` header that binds a sign-in to its browser. Each sign-in has its own cookie. */
export function pendingCookie(
  secrets: Secrets,
  provider: string,
  pending: PendingSignIn,
  request: Request,
  options: CookieOptions,
): string {
  const value = seal(secrets, JSON.stringify(pending), placeOf(provider, pending.state))
  return cookieOf(pending, value, request, options)
}

/** Returns the `Set-Cookie` header that removes the cookie of a sign-in which has ended. */
export function endedCookie(pending: PendingSignIn, request: Request, options: CookieOptions): string {
  return cookieOf(pending, '', request, options)
}

function cookieOf({ state }: PendingSignIn, value: string, request: Request, options: CookieOptions): string {
  return stringifySetCookie({
    name: nameOf(state),
    value,
    httpOnly: true,
    // The redirect from the identity provider is a cross-site request, for which a browser would not send a
    // `strict` cookie.
    sameSite: 'lax',
    path: `${options.base_path}/api/user/oidc/`,
    secure: hasSecureCookies(request, options),
    maxAge: value === '' ? 0 : LIFETIME_SECONDS,
  })
}

/**
 * Returns the sign-in with this state that the browser began at this identity provider; undefined if there is
 * none or it has expired.
 */
export function findPendingSignIn(
  secrets: Secrets,
  provider: string,
  state: string | null,
  { headers: { cookie } }: Request,
  nowMs: number,
): PendingSignIn | undefined {
  const sealed = state !== null && STATE.test(state) ? parseCookie(cookie ?? '')[nameOf(state)] : undefined
  if (state === null || sealed === undefined) return undefined
  try {
    const pending = pendingSignIn.parse(JSON.parse(unseal(secrets, sealed, placeOf(provider, state))))
    return pending.expiresTime * 1000 > nowMs ? pending : undefined
  } catch {
    return undefined
  }
}

function nameOf(state: string): string {
  return `sign-in-${state.slice(0, 16)}`
}

// The encryption is bound to identity provider and state, so that no other identity provider can end the
// sign-in.
function placeOf(provider: string, state: string): SealContext {
  return { table: 'pending sign-ins', row: `${provider} ${state}` }
}
