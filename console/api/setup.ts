import { queryOptions } from '@tanstack/react-query'
import type { CallPage } from './calls.ts'
import { request } from './client.ts'

/** State of a new gateway. */
export interface SetupState {
  readonly hasChannel: boolean
  readonly hasKey: boolean
  /** Id of the newest call; undefined before the first. */
  readonly lastCall: string | undefined
}

interface Counted {
  readonly total: number
}

/** Whether there is a channel. */
export function hasChannelQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'channels', 'any'],
    queryFn: async () => (await request<Counted>('GET', '/api/channel/?page_size=1')).total > 0,
  })
}

/** The state of the first steps; other browsers and programs take them as well. */
export function setupQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'setup'],
    queryFn: async (): Promise<SetupState> => {
      const [channels, keys, calls] = await Promise.all([
        request<Counted>('GET', '/api/channel/?page_size=1'),
        request<Counted>('GET', '/api/token/?page_size=1'),
        request<CallPage>('GET', '/api/log/?page_size=1'),
      ])
      return { hasChannel: channels.total > 0, hasKey: keys.total > 0, lastCall: calls.items[0]?.id }
    },
    staleTime: 0,
  })
}
