import { useEffect, useState } from 'react'
import { revealKey } from '../../api/keys.ts'

const SHOWN_MS = 30_000

/** A key shown in full. It is requested each time, and hidden after half a minute. */
export interface RevealedKey {
  readonly of: number
  readonly key: string
}

/** The row (`of`) whose key is revealed: at most one at a time. */
export function useRevealedKey(): readonly [
  RevealedKey | undefined,
  { readonly reveal: (id: number) => Promise<void>; readonly hide: () => void },
] {
  const [revealed, setRevealed] = useState<RevealedKey>()
  useEffect(() => {
    if (!revealed) return undefined
    const timer = setTimeout(() => setRevealed(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [revealed])
  const reveal = async (id: number): Promise<void> => {
    const key = await revealKey(id)
    setRevealed({ of: id, key })
  }
  return [revealed, { reveal, hide: () => setRevealed(undefined) }]
}
