import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'minor' | 'major' }) => void

// A new context has the function while the flag is set.
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as Collect
setFlagsFromString('--no-expose-gc')

/**
 * Collects the young generation of this process as often as it takes to promote what is in use. Garbage of
 * the old generation stays, with what it refers to.
 */
export function collectYoung(): void {
  for (let i = 0; i < 3; i++) collect({ type: 'minor' })
}

/** Collects all garbage of this process, and ends a full collection that has begun. */
export function collectAll(): void {
  collect({ type: 'major' })
}
