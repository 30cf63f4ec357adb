import type { Bank } from '../store/bank.ts'
import type { NodeFile, OutboxEntry } from '../store/node-file.ts'
import type { OpenHold } from './open-hold.ts'

/** Dependencies of a bank client. */
export interface BankClientParts {
  readonly bank: Bank
  readonly file: Pick<NodeFile, 'write'>
  readonly openHolds: () => Iterable<OpenHold>
  /** Called after each report. */
  readonly onReported?: () => Promise<void>
  /** Called with the error when the bank becomes unreachable, and with undefined on its return. */
  readonly onReachabilityChange: (failure: Error | undefined) => void
  /** Called with calls of tokens that the database lacks, as after a restore: they cannot be charged. */
  readonly onUnknownTokens: (calls: readonly OutboxEntry[]) => void
}
