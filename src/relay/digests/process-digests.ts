import { type DigestRules, LocalDigests, type ProcessDigests } from './digest-store.ts'
import { OrderedDigests } from './ordered-digests.ts'

/** Opens the memory of this process for a kind of digests. */
export function createProcessDigests({ isOrdered }: Pick<DigestRules, 'isOrdered'>): ProcessDigests {
  return isOrdered ? new OrderedDigests() : new LocalDigests()
}
