import { Suspense, useRef } from 'react'
import { lazyPage } from './lazy-page.ts'
import { useHasSessionEnded } from '../components/session-recovery.ts'

const SignInAgainDialog = lazyPage(async () => (await import('./sign-in-again-dialog.tsx')).SignInAgainDialog)

/** Loads the code of the dialog while the session lasts, because a newer build may replace the file later. */
export function preloadSignInAgainDialog(): void {
  void SignInAgainDialog.preload?.()
}

/**
 * The dialog of an ended session. It is hidden but not removed after the sign-in, so that the focus returns
 * to the element that had it.
 */
export function EndedSessionDialog() {
  const isOver = useHasSessionEnded()
  const wasOver = useRef(false)
  if (isOver) wasOver.current = true
  if (!wasOver.current) return null
  return (
    <Suspense>
      <SignInAgainDialog />
    </Suspense>
  )
}
