import type { Loan, LoanRequest } from '../store/bank.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'

/** Who asks for a loan learns within this time that there is none to be had. */
const PATIENCE_MS = 1_500
/** Requests that go to the bank at once. */
const AT_ONCE = 100

/** A request that waits for the bank. */
interface PendingLoan {
  readonly request: LoanRequest
  resolve(loan: Loan | undefined): void
  reject(error: unknown): void
}

/** The requests for loans that wait, in the order in which they came. */
export class LoanQueue {
  #waiting: PendingLoan[] = []

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Resolves to what the bank says; rejects with `StoreUnavailable` where it does not say so in time. */
  enqueue(request: LoanRequest): Promise<Loan | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((one) => one !== asked)
        reject(new StoreUnavailable('the database that lends quota does not answer'))
      }, PATIENCE_MS)
      const asked: PendingLoan = {
        request,
        resolve(loan) {
          clearTimeout(timer)
          resolve(loan)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      this.#waiting.push(asked)
    })
  }

  /** Those that go next. */
  takeBatch(): PendingLoan[] {
    const next = this.#waiting.slice(0, AT_ONCE)
    this.#waiting = this.#waiting.slice(AT_ONCE)
    return next
  }

  /** Tells all that wait that there is nothing to be had. */
  rejectAll(error: unknown): void {
    const refused = this.#waiting
    this.#waiting = []
    for (const one of refused) one.reject(error)
  }
}
