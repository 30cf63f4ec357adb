import { ResponseMemory } from '../limits/request-memory.ts'
import type { RunningCall } from './running-call.ts'

/** Memory for the answer of a call, from the share of its user. */
export function responseMemory({ services, hold }: Pick<RunningCall, 'services' | 'hold'>): ResponseMemory {
  const { token, user } = hold.account
  return new ResponseMemory(services.memory, { client: user.id, key: token.id })
}
