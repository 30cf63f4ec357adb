import { useCallback, useRef, useState } from 'react'

/** An action that cannot run twice at the same time; its result is not stored. */
export interface Action<Given extends readonly unknown[]> {
  readonly run: (...given: Given) => Promise<void>
  readonly isRunning: boolean
  readonly error: unknown
}

/** Runs an action; a second call while it runs does nothing. Errors are shown by the component. */
export function useAction<Given extends readonly unknown[]>(
  act: (...given: Given) => Promise<void>,
): Action<Given> {
  const [isRunning, setIsRunning] = useState(false)
  const [error, setError] = useState<unknown>()
  const running = useRef(false)
  const latest = useRef(act)
  latest.current = act
  const run = useCallback(async (...given: Given): Promise<void> => {
    if (running.current) return
    running.current = true
    setIsRunning(true)
    setError(undefined)
    try {
      await latest.current(...given)
    } catch (thrown) {
      setError(thrown)
    } finally {
      running.current = false
      setIsRunning(false)
    }
  }, [])
  return { run, isRunning, error }
}
