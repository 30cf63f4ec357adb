import { type DigestRules, LocalDigests, type OwnDigests } from './digest-store.ts'
import { OrderedDigests } from './ordered-digests.ts'

/** Opens the memory of this process for a kind of digests. */
export function ownDigests({ isOrdered }: Pick<DigestRules, 'isOrdered'>): OwnDigests {
  return isOrdered ? new OrderedDigests() : new LocalDigests()
}
