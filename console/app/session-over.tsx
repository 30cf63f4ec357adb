import { Suspense, useRef } from 'react'
import { lazyPage } from './lazy-page.ts'
import { useIsSessionOver } from './session-recovery.ts'

const SessionEnded = lazyPage(async () => (await import('./session-ended.tsx')).SessionEnded)

/**
 * Loads the dialog during the session, because a newer build may replace its file before the session ends.
 */
export function prepareSessionEnded(): void {
  void SessionEnded.preload?.()
}

/**
 * The dialog of an ended session. It is not removed afterwards, so that the focus returns to where it was.
 */
export function SessionOver() {
  const isOver = useIsSessionOver()
  const wasOver = useRef(false)
  if (isOver) wasOver.current = true
  if (!wasOver.current) return null
  return (
    <Suspense>
      <SessionEnded />
    </Suspense>
  )
}
