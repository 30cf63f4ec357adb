import { randomBytes } from 'node:crypto'
import { SESSION_SECONDS } from '../../auth/session-cookie.ts'
import type { SignInProof } from '../../store/operations/sessions.ts'
import type { ManagementParts } from '../parts.ts'

/** Longest `User-Agent` that is kept, in characters. */
const MAX_USER_AGENT = 256

/** Where a sign-in comes from, as the user sees it in the list of sessions. */
export interface SignInPlace {
  readonly address: string
  readonly userAgent: string | undefined
}

/** Starts a session of 30 days; undefined if the proof no longer holds. Resolves to the cookie's value. */
export async function startSession(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  userId: number,
  proof: SignInProof,
  { address, userAgent = '' }: SignInPlace,
): Promise<string | undefined> {
  const cookieValue = randomBytes(32).toString('base64url')
  const created_time = Math.floor(nowMs() / 1000)
  const isBegun = await store.write('beginSession', {
    userId,
    cookieValue,
    proof,
    created_time,
    expiresTime: created_time + SESSION_SECONDS,
    address,
    userAgent: userAgent.slice(0, MAX_USER_AGENT),
  })
  return isBegun ? cookieValue : undefined
}
