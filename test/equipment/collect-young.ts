import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'minor' | 'major' }) => void

// A new context has the function `gc` while the flag is set.
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as Collect
setFlagsFromString('--no-expose-gc')

/**
 * Collects the young generation of this process until everything in use is promoted. Garbage of the old
 * generation stays, with everything it refers to.
 */
export function collectYoung(): void {
  for (let i = 0; i < 3; i++) collect({ type: 'minor' })
}

/** Collects all garbage of this process, and ends a full collection that has begun. */
export function collectAll(): void {
  collect({ type: 'major' })
}
