import { useEffect, useState } from 'react'
import { revealKey } from '../../api/keys.ts'

const SHOWN_MS = 30_000

/** A full key that is requested each time, and removed after half a minute. */
export interface RevealedKey {
  readonly of: number
  readonly key: string
}

/** At most one revealed key at a time, by the id of its row. */
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
