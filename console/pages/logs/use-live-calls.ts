import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Call, CallFilter, CallScope } from '../../api/calls.ts'
import { followLiveCalls } from '../../api/live-calls.ts'
import { showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** The maximum number of live calls that are kept. */
export const MAX_LIVE_ROWS = 500
/**
 * Minimum milliseconds between two reloads of the list: on a busy gateway, the stream may leave out calls
 * every second.
 */
const ASK_AGAIN_MS = 30_000
/** Maximum scroll position in pixels at which the user still sees the newest rows. */
const AT_TOP = 80

/** Calls that ended while the page is open, newest first. */
export interface LiveCalls {
  readonly shown: readonly Call[]
  /**
   * Calls that ended while the user was scrolled down; they are shown later, so that the rows do not move.
   */
  readonly waiting: readonly Call[]
  readonly show: () => void
}

const NONE = { shown: [], waiting: [] } as const

/**
 * Receives calls as they end, while the page is visible. A call may also be in a list that was loaded in the
 * meantime.
 */
export function useLiveCalls(isLive: boolean, scope: CallScope, filter: CallFilter): LiveCalls {
  const texts = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const isVisible = usePageVisible()
  const [calls, setCalls] = useState<Pick<LiveCalls, 'shown' | 'waiting'>>(NONE)
  const filterText = JSON.stringify(filter)
  const latestTexts = useRef(texts)
  latestTexts.current = texts
  useEffect(() => {
    setCalls(NONE)
    if (!isLive || !isVisible) return
    const stopping = new AbortController()
    let asking: ReturnType<typeof setTimeout> | undefined
    let lastRequestedMs = Number.NEGATIVE_INFINITY
    const reloadList = (): void => {
      asking = undefined
      lastRequestedMs = performance.now()
      for (const name of ['calls', 'call-sums'])
        void client.invalidateQueries({ queryKey: [profile.id, name, scope] })
    }
    const follower = {
      onCalls: (ended: readonly Call[]) =>
        setCalls(({ shown, waiting }) =>
          scrollY <= AT_TOP
            ? { shown: [...ended, ...waiting, ...shown].slice(0, MAX_LIVE_ROWS), waiting: [] }
            : { shown, waiting: [...ended, ...waiting].slice(0, MAX_LIVE_ROWS) },
        ),
      onGap: () => {
        asking ??= setTimeout(reloadList, Math.max(0, lastRequestedMs + ASK_AGAIN_MS - performance.now()))
      },
    }
    followLiveCalls(scope, JSON.parse(filterText) as CallFilter, follower, stopping.signal).catch(
      (error: unknown) => showFailure(error, latestTexts.current),
    )
    return () => {
      stopping.abort()
      clearTimeout(asking)
    }
  }, [isLive, isVisible, scope, filterText, client, profile.id])
  return {
    ...calls,
    show: () => {
      scrollTo({ top: 0 })
      setCalls(({ shown, waiting }) => ({
        shown: [...waiting, ...shown].slice(0, MAX_LIVE_ROWS),
        waiting: [],
      }))
    },
  }
}

function usePageVisible(): boolean {
  const [isVisible, setIsVisible] = useState(!document.hidden)
  useEffect(() => {
    const look = (): void => setIsVisible(!document.hidden)
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isVisible
}
