import { z } from 'zod'
import type { User } from '../../domain/records/user.ts'
import type { ManagementParts } from '../parts.ts'

/** Sessions of a user; times are Unix seconds. `docs/api.md: Sessions`. */
export const sessionsSchema = z.array(
  z.object({
    id: z.string(),
    created_time: z.int(),
    last_used: z.int().describe('To the minute'),
    address: z.string(),
    user_agent: z.string(),
    current: z.boolean().describe('The session of this request'),
  }),
)

/** The live sessions of a user, latest first. `current` is the HMAC of the request's own session. */
export async function ownSessions(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  { id: userId }: User,
  current: string | undefined,
): Promise<z.output<typeof sessionsSchema>> {
  const nowSeconds = Math.floor(nowMs() / 1000)
  const sessions = await store.read('sessionsOf', { userId, nowSeconds })
  return sessions.map(({ idHash, created_time, lastUsed, address, userAgent }) => ({
    id: idHash,
    created_time,
    last_used: lastUsed,
    address,
    user_agent: userAgent,
    current: idHash === current,
  }))
}
