import { Suspense, useRef } from 'react'
import { lazyPage } from './lazy-page.ts'
import { useIsSessionOver } from './session-recovery.ts'

const SessionEnded = lazyPage(async () => (await import('./session-ended.tsx')).SessionEnded)

/** Loads the code of the dialog while the session lasts, because a newer build may replace the file later. */
export function prepareSessionEnded(): void {
  void SessionEnded.preload?.()
}

/**
 * The dialog of an ended session. It is hidden but not removed after the sign-in, so that the focus returns
 * to the element that had it.
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
