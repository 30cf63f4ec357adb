import { eventsOf } from '../components/event-splitter.ts'
import { ApiError } from './api-error.ts'
import type { Call, CallFilter, CallScope } from './calls.ts'
import { openEventStream, queryString } from './client.ts'

const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 30_000

/** The callbacks that get the calls as they end. */
export interface LiveCallListener {
  /** Calls that have just ended, in order. */
  readonly onCalls: (calls: readonly Call[]) => void
  /** Called when calls were or may have been missed: the list must then be requested again. */
  readonly onGap: () => void
}

/** Reports calls as they end until `signal` is aborted, and reconnects when the stream breaks off. */
export async function followLiveCalls(
  scope: CallScope,
  filter: CallFilter,
  { onCalls, onGap }: LiveCallListener,
  signal: AbortSignal,
): Promise<void> {
  const path = `/api/log/${scope === 'all' ? '' : 'self/'}stream${queryString({ ...filter })}`
  let lastId: string | undefined
  let pauseMs = FIRST_PAUSE_MS
  while (!signal.aborted) {
    try {
      const response = await openEventStream(path, lastId, signal)
      pauseMs = FIRST_PAUSE_MS
      // The stream does not contain calls that ended before it began; they are only in the list.
      onGap()
      for await (const { name, data, id } of eventsOf(response)) {
        lastId = id ?? lastId
        if (name === 'call') onCalls([JSON.parse(data) as Call])
        if (name === 'gap') onGap()
        if (name === 'end') break
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && !error.isPassing) throw error
    }
    await pause(pauseMs, signal)
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
