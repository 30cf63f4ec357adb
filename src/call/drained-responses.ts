import { FairPool } from '../limits/fair-pool.ts'

/** Maximum number of responses that are read to their end at the same time after their clients left. */
const MAX_DRAINS = 64
/** The part of them that one user may have. */
const ALONE_SHARE = 7 / 8

/** Counts, by user, the responses that are read to their end only for the charge. */
export class DrainedResponses extends FairPool {
  constructor(nowMs: () => number) {
    super({ max: () => MAX_DRAINS, aloneShare: ALONE_SHARE, nowMs })
  }
}
